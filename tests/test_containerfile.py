# SPDX-License-Identifier: Apache-2.0
"""The Containerfile: what it copies exists after `make wheel`, and the image runs as an unprivileged user."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def read_instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (ROOT / "Containerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [
        (name, instruction_arguments)
        for name, _, instruction_arguments in (line.partition(" ") for line in text.splitlines() if line.strip())
    ]


def test_copied_folders_are_those_that_the_makefile_fills():
    makefile = (ROOT / "Makefile").read_text()
    copied_sources = [
        instruction_arguments.split()[0]
        for name, instruction_arguments in read_instructions()
        if name == "COPY" and not instruction_arguments.startswith("--from=")
    ]
    assert copied_sources == ["build/wheels/"]
    assert re.search(r"^WHEELS := \$\(BUILD\)/wheels$", makefile, re.MULTILINE)
    assert "!build/wheels/joulemap-*.whl" in (ROOT / ".dockerignore").read_text().splitlines()


def test_copies_between_stages_name_an_earlier_stage():
    stages: set[str] = set()
    for name, instruction_arguments in read_instructions():
        if name == "FROM" and " AS " in instruction_arguments:
            stages.add(instruction_arguments.split(" AS ")[1])
        if name == "COPY" and instruction_arguments.startswith("--from="):
            assert instruction_arguments.split()[0].removeprefix("--from=") in stages


def test_the_image_runs_as_an_unprivileged_user():
    names = [name for name, _ in read_instructions()]
    assert dict(read_instructions())["USER"] == "1000:1000"
    assert names.index("USER") < names.index("ENTRYPOINT")


def test_hadolint_finds_no_fault():
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if program is None:
        pytest.fail("hadolint is not installed (tests/requirements.txt)")
    process = subprocess.run([program, str(ROOT / "Containerfile")], capture_output=True, text=True)
    assert process.returncode == 0, process.stdout
