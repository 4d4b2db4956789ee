"""What the documents show is what the program prints: every ```console block is run, and its output compared.

A block is commands after "$ ", each followed by what it prints; a line of "..." stands for any lines. A command that is
meant to fail says so in a comment: "$ joulemap diff A B  # exits with 1". In the folder where they run lie run.joule, the
recording of examples/, and the same as other.joule. Only joulemap runs. `make update-goldens` rewrites what is printed.
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


def snippets() -> list:
    """Page, command, what it prints."""
    found = []
    for page in sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")]):
        for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, printed = part.partition("\n")
                found.append(pytest.param(page, command, printed, id=f"{page.stem}: {command}"))
    return found


def run(program: Path, folder: Path, command: str) -> str:
    for name in ("run.joule", "other.joule"):
        shutil.copy(RECORDING, folder / name)
    words = shlex.split(command, comments=True)
    assert words[0] == "joulemap"
    settings = {**os.environ, "LC_ALL": "C.UTF-8", "JOULEMAP_DATA": str(folder / "data")}
    settings.pop("COLUMNS", None)
    process = subprocess.run([program, *words[1:]], cwd=folder, env=settings, capture_output=True, text=True, timeout=120)
    expected = re.search(r"# exits with (\d+)", command)
    assert process.returncode == (int(expected[1]) if expected else 0), process.stderr
    lines = (process.stdout + process.stderr).strip("\n").split("\n")
    return "".join(line.rstrip() + "\n" for line in lines)


@pytest.mark.parametrize(("page", "command", "printed"), snippets())
def test_a_snippet_prints_what_the_page_shows(binaries, tmp_path, page, command, printed):
    text = run(binaries / "joulemap", tmp_path, command)
    if not printed.strip():
        return
    is_part = any(line.strip() == "..." for line in printed.split("\n"))
    if os.environ.get("JOULEMAP_UPDATE_GOLDENS") and not is_part:
        page.write_text(page.read_text().replace(f"$ {command}\n{printed}", f"$ {command}\n{text}"))
        return
    lines = printed.rstrip("\n").split("\n")
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + "\n" for line in lines)
    assert re.fullmatch(pattern, text), text
