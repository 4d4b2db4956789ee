# SPDX-License-Identifier: Apache-2.0
"""The reference is complete: generated pages are current; environment variables and configuration keys are described."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
REFERENCE_FOLDER = ROOT / "docs" / "reference"
sys.path.insert(0, str(ROOT / "tools"))

import make_reference  # noqa: E402

LITERAL_PATTERN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')
COMMENT_PATTERN = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
MACRO_PATTERN = re.compile(r"^\s*#\s*(?:define|if|ifdef|ifndef|undef)[^\n]*", re.MULTILINE)


def variables_of_sources() -> set[str]:
    """Names in texts of the sources: variables that are read, set, or named in messages."""
    variable_names = set()
    for path in [*ROOT.glob("src/**/*.cc"), *ROOT.glob("src/**/*.h"), *ROOT.glob("python/joulemap/**/*.py")]:
        if path.name.endswith("_test.cc"):
            continue
        text = path.read_text()
        if path.suffix != ".py":
            text = MACRO_PATTERN.sub("", COMMENT_PATTERN.sub("", text))
        variable_names |= {
            name for literal in LITERAL_PATTERN.findall(text) for name in re.findall(r"\bJOULEMAP_[A-Z_]+\b", literal)
        }
    return variable_names


def test_generated_pages_are_current(binaries):
    command = [sys.executable, ROOT / "tools" / "make_reference.py", "--check", "--program", binaries / "joulemap"]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert checked.returncode == 0, checked.stderr


def test_a_stale_page_is_found(binaries, tmp_path, monkeypatch, capsys):
    for name in ("cli.md", "python.md"):
        (tmp_path / name).write_text((REFERENCE_FOLDER / name).read_text() + "more\n")
    monkeypatch.setattr(make_reference, "REFERENCE_FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["make_reference.py", "--check", "--program", str(binaries / "joulemap")])
    assert make_reference.main() == 1
    assert "cli.md is out of date" in capsys.readouterr().err


def test_every_verb_and_option_is_on_the_page(joulemap):
    page = (REFERENCE_FOLDER / "cli.md").read_text()
    sections = dict(re.findall(r"^##+ joulemap ([a-z -]+)\n(.*?)(?=^##+ |\Z)", page, re.MULTILINE | re.DOTALL))
    common_options_text = page.split("## Common options")[1].split("\n## ")[0]
    verbs = [[verb] for verb in make_reference.parse_verbs(joulemap("help").out)]
    assert len(verbs) > 10
    while verbs:
        verb = verbs.pop()
        text = joulemap("help", *verb).out
        for option in re.findall(r"^  (?:-\w,)?(--[a-z0-9-]+)", text, re.MULTILINE):
            assert f"`{option}" in sections[" ".join(verb)] + common_options_text, (verb, option)
        verbs += [
            [*verb, name] for name in re.findall(r"^  ([a-z-]+) +\S", text.partition("Subcommands:")[2], re.MULTILINE)
        ]


@pytest.mark.parametrize("name", ["cli.md", "python.md"])
def test_no_description_is_empty(name):
    assert not re.findall(r"^\|.*\|\s*\|$", (REFERENCE_FOLDER / name).read_text(), re.MULTILINE)


def test_every_environment_variable_is_described_and_no_other():
    page = (REFERENCE_FOLDER / "environment-variables.md").read_text()
    described = re.findall(r"^\| `(JOULEMAP_[A-Z_]+)`", page, re.MULTILINE)
    assert sorted(described) == sorted(variables_of_sources())


def test_every_key_of_the_configuration_is_described_and_no_other():
    source = (ROOT / "src" / "cli" / "config_file.cc").read_text()
    keys = re.findall(r'"([a-z0-9-]+)"', re.search(r"kConfigKeys = \{(.*?)\}", source, re.DOTALL)[1])
    page = (REFERENCE_FOLDER / "configuration.md").read_text()
    assert sorted(re.findall(r"^\| `([a-z0-9-]+)`", page, re.MULTILINE)) == sorted(keys)
