# SPDX-License-Identifier: Apache-2.0
"""Figures in the documents come from docs/evidence (tools/make_evidence.py), and pages contain no other ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from make_evidence import EVIDENCE_PAGE, QUOTE_PATTERN, main, blank_out_code  # noqa: E402

EVIDENCE = """\
topic = "Sensors"
question = "How far is it?"
command = "python3 bench/far.py"
date = 2026-11-18
hardware = "one card"
software = "PyTorch"
commit = "0123abcd"
kind = "measured"
n = "3 runs"
notes = ["Looked at once."]

[columns]
network = "network"
error = "RMS error"

[[row]]
id = "vgg"
network = "VGG"
error = "4.2 %"

[[row]]
id = "swin"
network = "Swin | T"
"""
QUOTED_PAGE = "The error is\n<!-- e:far.vgg.error -->4.2 %<!-- / --> here.\n"

LINTED_PAGES = ["README.md", "docs/tutorials/**/*.md", "docs/how-to/**/*.md", "docs/explanation/**/*.md"]
FIGURE_PATTERN = re.compile(
    r"\d[\d.,]*\s*(?:%|percent\b|per cent\b)"
    r"|\d[\d.,]*\s*(?:x|×|times)\s+(?:as\s+|the\s+)?"
    r"(?:fast|slow|less|more|cheap|dear|few|small|large|long|short|better|worse)"
)
# Definitions and settings, not results: levels of intervals and tests, settings of simulations, constants of the method.
# A space matches any white space.
ALLOWED_FIGURES = [
    r"\b(?:90|95|99) %(?: \w+)? (?:intervals?|confidence|level|limits?)\b",
    r"\bintervals? (?:of|at) (?:90|95) %",
    r"\bconfidence (?:level )?of (?:90|95) %",
    r"\b(?:90|95) % in `(?:stat|report)`|`report` 90 %",
    r"\bhalf width,? (?:of its|at) 95 %",
    r"\(95 %\)",
    r"\bfive pairs have at most 93\.75 %|\b93\.75 %;",
    r"\b(?:testing each|false discovery rate) at 10 %",
    r"\b1 % noise\b|\ba 3 % difference in one cell\b",
    r"\bat most 1 % of the steps\b|\b10 % trimmed mean\b|\b5 % of a GPU's energy or more\b",
    r"\bmore than the noise and 1 % of the total\b",
    r"\bstandard deviation between runs of 2 %, the median\b",
]


@pytest.fixture
def evidence_tree(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "evidence").mkdir(parents=True)
    (tmp_path / "docs" / "evidence" / "far.toml").write_text(EVIDENCE)
    (tmp_path / "README.md").write_text(QUOTED_PAGE)
    assert main(["--root", str(tmp_path)]) == 0
    return tmp_path


def check(tree: Path) -> int:
    return main(["--check", "--root", str(tree)])


def replace_in_file(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_figures_of_all_pages_are_up_to_date():
    command = [sys.executable, str(ROOT / "tools" / "make_evidence.py"), "--check"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


def test_scripts_of_evidence_exist():
    for path in sorted((ROOT / "docs" / "evidence").glob("*.toml")):
        for script in re.findall(r"\b(?:bench|src|tests|data)/[\w./-]+\w", path.read_text()):
            assert (ROOT / script).exists(), f"{path.name}: {script}"


def test_the_page_shows_every_entry(evidence_tree):
    page = (evidence_tree / EVIDENCE_PAGE).read_text()
    assert "## Sensors\n\n### far\n\nHow far is it?\n" in page
    assert "- Looked at once.\n" in page
    assert "| network | RMS error |\n|---|---|\n| VGG | 4.2 % |\n| Swin \\| T |  |\n" in page


def test_a_tree_that_agrees_passes(evidence_tree):
    assert check(evidence_tree) == 0


def test_a_changed_figure_fails_and_is_rewritten(evidence_tree, capsys):
    replace_in_file(evidence_tree / "docs" / "evidence" / "far.toml", "4.2 %", "5.0 %")
    original_readme = (evidence_tree / "README.md").read_text()
    assert check(evidence_tree) == 1
    errors = capsys.readouterr().err
    assert "README.md:2: far.vgg.error is '5.0 %', the page has '4.2 %'" in errors
    assert f"{EVIDENCE_PAGE}:" in errors
    assert (evidence_tree / "README.md").read_text() == original_readme, "--check writes nothing"
    assert main(["--root", str(evidence_tree)]) == 0
    assert (evidence_tree / "README.md").read_text() == QUOTED_PAGE.replace("4.2", "5.0")
    assert check(evidence_tree) == 0


def test_pages_in_folders_are_checked(evidence_tree, capsys):
    (evidence_tree / "docs" / "how-to").mkdir()
    (evidence_tree / "docs" / "how-to" / "page.md").write_text(QUOTED_PAGE.replace("4.2", "4.3"))
    assert check(evidence_tree) == 1
    assert "docs/how-to/page.md:2:" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["far.vgg.time", "far.resnet.error", "near.vgg.error", "far.swin.error", "far.vgg"])
def test_an_unknown_figure_fails(evidence_tree, capsys, name):
    replace_in_file(evidence_tree / "README.md", "far.vgg.error", name)
    assert check(evidence_tree) == 1
    assert f"README.md:2: {name} is in no evidence file" in capsys.readouterr().err
    assert main(["--root", str(evidence_tree)]) == 1, "writing cannot resolve it"


@pytest.mark.parametrize(
    "text", ["<!-- e:far.vgg.error -->4.2 %\n", "4.2 %<!-- / -->\n", "<!-- e:far.vgg.error -->4.2 %\n" + QUOTED_PAGE]
)
def test_a_marker_without_its_counterpart_fails(evidence_tree, text):
    (evidence_tree / "README.md").write_text(text)
    assert check(evidence_tree) == 1


@pytest.mark.parametrize(
    "text", ["`<!-- e:far.no.error -->1<!-- / -->`\n", "```md\n<!-- e:far.no.error -->1<!-- / -->\n```\n"]
)
def test_evidence_check_ignores_code(evidence_tree, text):
    (evidence_tree / "README.md").write_text(text)
    assert check(evidence_tree) == 0


def test_an_edited_page_of_evidence_fails(evidence_tree, capsys):
    replace_in_file(evidence_tree / EVIDENCE_PAGE, "| VGG | 4.2 % |", "| VGG | 4.1 % |")
    assert check(evidence_tree) == 1
    assert re.search(rf"^{EVIDENCE_PAGE}:\d+: out of date", capsys.readouterr().err, re.MULTILINE)


EVIDENCE_KEYS = ["topic", "question", "command", "date", "hardware", "software", "commit", "kind", "n", "notes"]


@pytest.mark.parametrize("key", EVIDENCE_KEYS)
def test_a_missing_key_fails(evidence_tree, capsys, key):
    path = evidence_tree / "docs" / "evidence" / "far.toml"
    path.write_text(re.sub(rf"^{key} = .*\n", "", EVIDENCE, flags=re.MULTILINE))
    assert check(evidence_tree) == 1
    assert f"docs/evidence/far.toml:1: the key '{key}' is missing" in capsys.readouterr().err


EVIDENCE_FAULTS = {
    "two rows with one id": ('id = "swin"', 'id = "vgg"'),
    "no id": ('id = "swin"', ""),
    "an id with a dot": ('id = "swin"', 'id = "swin.t"'),
    "an unknown column": ('network = "VGG"', 'net = "VGG"'),
    "a number": ('error = "4.2 %"', "error = 4.2"),
    "an unknown kind": ('"measured"', '"guessed"'),
    "an unknown topic": ('"Sensors"', '"Other"'),
    "a date that is a text": ("2026-11-18", '"18 November"'),
    "a commit that is none": ("0123abcd", "latest"),
    "an unknown key": ("[columns]", 'color = "red"\n[columns]'),
    "no TOML": ("[columns]", "[columns"),
}


@pytest.mark.parametrize("fault", EVIDENCE_FAULTS)
def test_a_faulty_file_fails(evidence_tree, capsys, fault):
    replace_in_file(evidence_tree / "docs" / "evidence" / "far.toml", *EVIDENCE_FAULTS[fault])
    assert check(evidence_tree) == 1
    assert "docs/evidence/far.toml:1:" in capsys.readouterr().err


def unquoted_figures(text: str) -> list[str]:
    """Percentages and comparisons of speed that are neither quoted from the evidence, nor code, nor definitions."""

    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    for pattern in ALLOWED_FIGURES:
        text = re.sub(pattern.replace(" ", r"\s+"), blank, text)
    text = re.sub(r"<!--.*?-->", blank, QUOTE_PATTERN.sub(blank, blank_out_code(text)), flags=re.DOTALL)
    return [f"{text.count(chr(10), 0, match.start()) + 1}: {match[0]}" for match in FIGURE_PATTERN.finditer(text)]


@pytest.mark.parametrize(
    "text", ["5 % off", "5% off", "2.5 percent", "20 times faster", "3x less", "1.5 × more", "twice 7 %"]
)
def test_the_lint_finds_figures(text):
    assert unquoted_figures(f"It is\n{text}.")[0].startswith("2: ")


@pytest.mark.parametrize(
    "text",
    [QUOTED_PAGE, "`--fail-over 5%`", "```sh\nfail 5%\n```\n", "a 90 % interval", "its 95 % confidence interval",
     "90 % intervals", "<!-- 5 % -->", "run it 10 times", "a batch of 32"],
)  # fmt: skip
def test_the_lint_allows_quotes_code_and_definitions(text):
    assert unquoted_figures(text) == []


PAGES = sorted(page for pattern in LINTED_PAGES for page in ROOT.glob(pattern))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_contain_no_figures_of_their_own(page):
    stray_figures = unquoted_figures(page.read_text())
    assert not stray_figures, "quote them from docs/evidence: " + "; ".join(stray_figures)
