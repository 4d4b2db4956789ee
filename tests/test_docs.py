"""The documentation is consistent: the options, diagnostics, links and folders it names exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/sysroots/*.md")])


# Options of every verb, which docs/reference/configuration.md and the overview explain.
COMMON = {"--help", "--sysroot", "--output", "--color", "--quiet", "--verbose"}


def sources() -> str:
    return "\n".join(path.read_text() for path in sorted(ROOT.glob("src/**/*.cc")))


def test_every_option_of_the_stat_page_is_in_its_help_and_the_other_way_round(joulemap):
    documented = set(re.findall(r"^\| `(-{1,2}[\w-]+)", (ROOT / "docs" / "stat.md").read_text(), re.MULTILINE))
    help_text = joulemap("stat", "--help").out
    offered = {line.split()[0].split(",")[0] for line in help_text.splitlines() if line.strip().startswith("-")}
    assert documented == offered - {"-h", "-q", "-v", "--color"}


@pytest.mark.parametrize(("verb", "name"), [("report", "report"), ("diff", "diff"), ("predict", "prediction")])
def test_every_option_that_a_page_explains_is_in_the_help(joulemap, verb, name):
    page = (ROOT / "docs" / f"{name}.md").read_text().split("\n## One operation")[0]
    offered = set(re.findall(r"(--[a-z0-9-]+)", joulemap(verb, "--help").out))
    assert set(re.findall(r"`(--[a-z0-9-]+)", page)) <= offered
    missing = offered - set(re.findall(r"(--[a-z0-9-]+)", page)) - COMMON
    assert not missing, "the page explains all of them"


def test_every_diagnostic_of_the_sensors_page_is_one_the_program_makes():
    table = (ROOT / "docs" / "sensors.md").read_text().split("## Faults")[1].split("##")[0]
    codes = set(re.findall(r"`([a-z]+_[a-z_]+)`", table))
    assert codes
    for code in codes:
        assert f'"{code}"' in sources(), code


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_paths_lead_somewhere(page):
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / target).exists(), target
    for path in re.findall(r"`((?:src|tests|tools|fuzz|bench|docs|examples)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path


def test_the_commands_of_the_readme_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    for page in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"^\s+make ([\w-]+)", (ROOT / page).read_text(), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_example_trains():
    command = [sys.executable, str(ROOT / "examples" / "train_digits.py"), "--epochs", "2", "--samples", "1024"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert process.returncode == 0, process.stderr
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", process.stdout)]
    assert len(losses) == 2 and losses[1] < losses[0]
