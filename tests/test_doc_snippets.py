"""Runs every ```console block of the documentation; the blocks of a page run in order in one folder.

A block contains commands after "$ ", each followed by its output. The output must match exactly; "..." on a line
matches any lines, and a command without output is not compared. A command that is meant to fail has a comment:
"$ joulemap diff A B  # exits with 1". The folder contains examples/ and its recording as run.joule and other.joule;
`joulemap` and `python3` are those of the tests. `make update-goldens` rewrites the outputs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RECORDING = ROOT / "examples" / "resnet50-h200.joule"
CommandSnippet = tuple[str, str]  # a command, and its documented output


def extract_snippets(page: Path) -> list[CommandSnippet]:
    snippets = []
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, documented_output = part.partition("\n")
            snippets.append((command, documented_output))
    return snippets


DECISIONS_FOLDER = ROOT / "docs" / "decisions"  # without examples
PAGES = [
    page for page in sorted(ROOT.glob("docs/**/*.md")) if page.parent != DECISIONS_FOLDER and extract_snippets(page)
]
PAGES += [ROOT / "README.md"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("run.joule", "other.joule"):
        shutil.copy(RECORDING, tmp_path / name)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (programs / "python3").chmod(0o755)
    return tmp_path


def run(binaries: Path, folder: Path, command: str) -> str:
    settings = {**os.environ, "LC_ALL": "C.UTF-8", "JOULEMAP_DATA": str(folder / "data")}
    settings["PATH"] = os.pathsep.join([str(folder / "programs"), str(binaries), settings["PATH"]])
    settings["PYTHONPATH"] = str(binaries.parent / "python")
    settings.pop("COLUMNS", None)
    process = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=settings, capture_output=True, text=True, timeout=300
    )
    expected = re.search(r"# exits with (\d+)", command)
    assert process.returncode == (int(expected[1]) if expected else 0), f"{command}\n{process.stderr}"
    lines = (process.stdout + process.stderr).strip("\n").split("\n")
    return "".join(line.rstrip() + "\n" for line in lines)


def is_partial_output(documented_output: str) -> bool:
    return any(line.strip() == "..." for line in documented_output.split("\n"))


def matches_documented(documented_output: str, text: str) -> bool:
    lines = documented_output.rstrip("\n").split("\n")
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + "\n" for line in lines)
    return re.fullmatch(pattern, text) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_on_pages_match_the_output_of_the_program(binaries, folder, page):
    for command, documented_output in extract_snippets(page):
        text = run(binaries, folder, command)
        if not documented_output.strip() or matches_documented(documented_output, text):
            continue
        if not os.environ.get("JOULEMAP_UPDATE_GOLDENS") or is_partial_output(documented_output):
            remedy = (
                "correct the part that it shows"
                if is_partial_output(documented_output)
                else "make update-goldens rewrites it"
            )
            pytest.fail(f"$ {command}\n{text}\nis not what {page.relative_to(ROOT)} shows; {remedy}")
        page.write_text(page.read_text().replace(f"$ {command}\n{documented_output}", f"$ {command}\n{text}"))


PLOTS = [ROOT / "docs" / "images" / f"{name}.svg" for name in ("bars", "flame", "timeline", "violin")]


@pytest.mark.parametrize("picture", PLOTS, ids=lambda picture: picture.stem)
def test_pictures_are_what_the_program_draws(binaries, folder, picture):
    run(binaries, folder, f"joulemap report run.joule --plot {picture.stem} -o {picture.name}")
    drawn_svg = (folder / picture.name).read_text()
    if os.environ.get("JOULEMAP_UPDATE_GOLDENS"):
        picture.write_text(drawn_svg)
    assert drawn_svg == picture.read_text(), "make update-goldens draws it again"
