"""tools/repeat_tests.py lists failed runs, with the tests that failed and how often."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPEAT_TESTS_TOOL = Path(__file__).resolve().parent.parent / "tools" / "repeat_tests.py"

# Like tools/run_tests.sh: takes a folder for its results. Its second run fails.
TESTS = """#!/bin/sh
echo x >> {counter}
if [ $(wc -l < {counter}) = 2 ]; then broken='<failure message="no"/>'; fi
echo '<testsuite><testcase name="base.Good"/><testcase name="base.Bad">'$broken'</testcase></testsuite>' > $1/unit.xml
echo '<testsuites><testcase classname="test_a" name="test_b"><skipped/></testcase></testsuites>' > $1/programs.xml
cat /proc/$PPID/task/$PPID/children > {folder}/beside
[ -z "$broken" ]
"""


@pytest.fixture
def repeat(tmp_path):
    def run(*flags: str) -> subprocess.CompletedProcess:
        script = tmp_path / "tests.sh"
        script.write_text(TESTS.format(counter=tmp_path / "runs", folder=tmp_path))
        script.chmod(0o755)
        command = [sys.executable, REPEAT_TESTS_TOOL, "--folder", tmp_path / "results", *flags, "--command", script]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60)

    return run


def test_a_failed_run_is_reported_with_its_failures(repeat):
    result = repeat("--runs", "3")
    assert result.returncode == 1
    lines = [line.split() for line in result.stdout.splitlines()]
    assert [line[1] for line in lines[1:] if line[0] in {"1", "2", "3"} and len(line) == 6] == ["green", "RED", "green"]
    assert "2 of 3 runs green" in result.stdout
    assert result.stdout.splitlines()[-1].split() == ["1", "x", "base.Bad"]


def test_runs_that_are_all_green_end_well_and_leave_no_loops_behind(repeat, tmp_path):
    result = repeat("--runs", "1", "--beside", "2")
    assert result.returncode == 0
    assert "1 of 1 runs green, beside 2 busy loops" in result.stdout
    loops_and_tests = (tmp_path / "beside").read_text().split()
    assert len(loops_and_tests) == 3
    assert not any(Path(f"/proc/{pid}").exists() for pid in loops_and_tests)
