"""The pytest plugin, run in a separate pytest process."""

from __future__ import annotations

import subprocess
import sys

import pytest

TESTS = """
import pytest

def test_free():
    pass

@pytest.mark.joules(budget=1e9)
def test_frugal():
    pass

@pytest.mark.joules(budget=1e-9)
def test_wasteful():
    import time
    end = time.perf_counter() + 1
    while time.perf_counter() < end:
        pass

@pytest.mark.joules(budget=1e-9)
def test_fails_anyway():
    assert 1 == 2

@pytest.mark.joules
def test_without_a_budget():
    pass
"""


@pytest.fixture
def run(tmp_path, environment):
    (tmp_path / "test_it.py").write_text(TESTS)

    def run_pytest(*arguments: str, **more: str) -> str:
        command = [sys.executable, "-m", "pytest", "-p", "joulemap._pytest_plugin", "-q", "--tb=short"]
        env = {**environment, "JOULEMAP_SENSORS": "estimate", **more}
        whole = [*command, *arguments, "test_it.py"]
        process = subprocess.run(whole, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=env)
        return process.stdout + process.stderr

    return run_pytest


def test_a_test_that_exceeds_its_budget_fails_beyond_doubt_only(run):
    told = run("-k", "frugal or free")
    assert "2 passed" in told
    assert "joules" not in told.split("passed")[0]


def test_the_failure_tells_the_budget_and_what_was_drawn(run):
    told = run("-k", "wasteful")
    assert "1 failed" in told
    assert "its budget is 1e-09 J" in told
    assert "estimated" in told


def test_a_test_that_fails_anyway_tells_its_own_error(run):
    told = run("-k", "anyway")
    assert "assert 1 == 2" in told
    assert "budget is" not in told


def test_a_mark_without_a_budget_is_a_mistake(run):
    assert "takes a budget in joules" in run("-k", "without")


def test_a_budget_that_cannot_be_held_fails(run, tmp_path):
    (tmp_path / "nothing").mkdir()
    told = run("-k", "frugal", JOULEMAP_SENSORS="powercap", JOULEMAP_SYSROOT=str(tmp_path / "nothing"))
    assert "its energy is not known" in told


def test_all_tests_are_told_when_asked_for(run):
    told = run("--joules", "-k", "free or frugal")
    assert "test_it.py::test_free: " in told
    assert "budget 1e+09 J" in told
