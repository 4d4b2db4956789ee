"""The group of tests that depend on timely scheduling is small, and its skipped tests are counted."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
MAX_REAL_TIME_TESTS = 5

SKIPPING_TESTS = """
import pytest

@pytest.mark.real_time
@pytest.mark.parametrize("number", range({skipped}))
def test_that_did_not_get_its_turn(number):
    pytest.skip("too late")

def test_that_passes():
    pass
"""


@pytest.mark.parametrize(("skipped", "code"), [(MAX_REAL_TIME_TESTS, 0), (MAX_REAL_TIME_TESTS + 1, 1)])
def test_more_skips_than_five_are_a_failure(tmp_path, skipped, code):
    shutil.copy(TESTS / "conftest.py", tmp_path)
    (tmp_path / "test_group.py").write_text(SKIPPING_TESTS.format(skipped=skipped))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert process.returncode == code, process.stdout


def find_marked_tests(file: Path) -> list[ast.FunctionDef]:
    functions = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)]
    return [function for function in functions if any("real_time" in ast.unparse(d) for d in function.decorator_list)]


def test_the_group_has_at_most_five_tests_with_a_stated_reason_each():
    group = {
        f"{file.name}::{marked_test.name}": marked_test
        for file in sorted(TESTS.rglob("test_*.py"))
        for marked_test in find_marked_tests(file)
    }
    assert len(group) <= MAX_REAL_TIME_TESTS, sorted(group)
    for name, function in group.items():
        assert "real time" in (ast.get_docstring(function) or ""), name
