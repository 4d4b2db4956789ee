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
        full_command = [*command, *arguments, "test_it.py"]
        process = subprocess.run(full_command, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=env)
        return process.stdout + process.stderr

    return run_pytest


def test_a_test_fails_only_if_it_exceeds_its_budget_beyond_the_uncertainty(run):
    result = run("-k", "frugal or free")
    assert "2 passed" in result
    assert "joules" not in result.split("passed")[0]


def test_the_failure_message_contains_the_budget_and_the_energy(run):
    result = run("-k", "wasteful")
    assert "1 failed" in result
    assert "the budget is 1e-09 J" in result
    assert "estimated" in result


def test_a_test_that_fails_anyway_shows_its_own_error(run):
    result = run("-k", "anyway")
    assert "assert 1 == 2" in result
    assert "budget is" not in result


def test_an_energy_mark_without_a_budget_is_an_error(run):
    assert "needs a budget in J" in run("-k", "without")


def test_an_energy_budget_that_is_exceeded_fails(run, tmp_path):
    (tmp_path / "nothing").mkdir()
    result = run("-k", "frugal", JOULEMAP_SENSORS="powercap", JOULEMAP_SYSROOT=str(tmp_path / "nothing"))
    assert "the energy is unknown" in result


def test_joules_option_lists_every_test(run):
    result = run("--joules", "-k", "free or frugal")
    assert "test_it.py::test_free: " in result
    assert "budget 1e+09 J" in result
