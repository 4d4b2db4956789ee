"""The documentation is consistent: the options, paths and targets it names exist. tests/test_site.py checks its links."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/sysroots/*.md")])
CODE_PATTERN = re.compile(r"^```\w*\n(.*?)^```|(?<!`)`(joulemap [^`]+)`", re.MULTILINE | re.DOTALL)
COMMAND_PATTERN = re.compile(r"(?:^|[\s;&|(])joulemap ((?:[a-z][a-z-]* )*)([^\n]*)")


def find_options(text: str) -> Iterator[tuple[str, str]]:
    """The verb and each long option of the joulemap commands on a page."""
    for block, inline in CODE_PATTERN.findall(text):
        lines = (block or inline).replace("\\\n", " ").splitlines()
        if block.startswith("$ "):
            lines = [line for line in lines if line.startswith("$ ")]  # the others are output
        for verbs, argument_text in (
            command_match for line in lines for command_match in COMMAND_PATTERN.findall(re.sub(r"\s#.*", "", line))
        ):
            joulemap_arguments = re.split(r" -- |[|;&>]", f" {argument_text}")[
                0
            ]  # options after these are of other programs
            yield from ((verbs, option) for option in re.findall(r"(?<=\s)--[a-z][\w-]*", joulemap_arguments) if verbs)


def test_options_are_found_in_commands():
    text = "`joulemap diff A B --fail-over 5%`\n```console\n$ joulemap record --probe -- env --x  # --y\nuse --z\n```\n"
    assert list(find_options(text)) == [("diff ", "--fail-over"), ("record ", "--probe")]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_options_in_commands_are_in_the_help(joulemap, page):
    @cache
    def read_help(verb: str, subcommand: str) -> str:
        return joulemap(verb, *([subcommand] if verb in ("bench", "experiment", "model") else []), "--help").out

    for verbs, option in find_options(page.read_text()):
        verb, subcommand = [*verbs.split(), ""][:2]
        if verb != "collect":  # of the Python package
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", read_help(verb, subcommand)), f"joulemap {verbs}{option}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_named_in_documents_exist(page):
    for path in re.findall(r"`((?:src|tests|tools|fuzz|bench|docs|examples|web|python)/[\w./-]+)`", page.read_text()):
        assert (ROOT / path).exists(), path


PAGES_WITH_MAKE_TARGETS = ["README.md", "CONTRIBUTING.md", "docs/how-to/install.md", ".github/pull_request_template.md"]


@pytest.mark.parametrize("page", PAGES_WITH_MAKE_TARGETS)
def test_make_targets_named_in_documents_exist(page):
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:^\s*|`)make ([a-z][\w-]*)", (ROOT / page).read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_training_example_lowers_its_loss():
    command = [sys.executable, str(ROOT / "examples" / "train_digits.py"), "--epochs", "2", "--samples", "1024"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert process.returncode == 0, process.stderr
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", process.stdout)]
    assert len(losses) == 2 and losses[1] < losses[0]
