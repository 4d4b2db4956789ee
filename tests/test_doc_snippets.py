"""What the documents show is what the program prints: every ```console block is run, and its output compared.

A block is commands after "$ ", each followed by what it prints; a line of "..." stands for any lines. A command that is meant to fail
says so in a comment: "$ joulemap diff A B  # exits with 1". In the folder where they run lie run.joule, the recording of examples/, and a
second one by the name of other.joule. Only joulemap runs.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RECORDING = ROOT / "examples" / "resnet50-h200.joule"


def snippets() -> list[tuple[str, str, list[str]]]:
    """Page, command, what it prints."""
    found = []
    for page in sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")]):
        for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, *printed = part.rstrip("\n").split("\n")
                found.append((page.name, command, printed))
    return found


def pattern_of(printed: list[str]) -> str:
    """The lines as a regular expression."""
    text = "".join(".*\n(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + "\n" for line in printed)
    return text


@pytest.mark.parametrize(("page", "command", "printed"), snippets(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_snippet_prints_what_the_page_shows(binaries, tmp_path, page, command, printed):
    for name in ("run.joule", "other.joule"):
        shutil.copy(RECORDING, tmp_path / name)
    expected_code = int((re.search(r"# exits with (\d+)", command) or [0, 0])[1])
    words = shlex.split(command, comments=True)
    assert words[0] == "joulemap"
    settings = {**os.environ, "LC_ALL": "C.UTF-8", "JOULEMAP_DATA": str(tmp_path / "data")}
    settings.pop("COLUMNS", None)
    run = subprocess.run([binaries / "joulemap", *words[1:]], cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=120)
    assert run.returncode == expected_code, run.stderr
    text = "".join(line.rstrip() + "\n" for line in (run.stdout + run.stderr).strip("\n").split("\n"))
    shown = [*printed]
    while shown and not shown[0].strip():
        shown.pop(0)
    while shown and not shown[-1].strip():
        shown.pop()
    if not shown:
        return
    if shown[-1].strip() == "...":
        shown.pop()
        assert re.match(pattern_of(shown), text), text
    else:
        assert re.fullmatch(pattern_of(shown), text), text
