# SPDX-License-Identifier: Apache-2.0
"""pytest: the plugin reports the energy of each test and fails tests that exceed their energy budget.

    pytest --joules                       # a table at the end, largest energy first

    @pytest.mark.joules(budget=2.5)       # fails if the energy in J exceeds the budget by more than its uncertainty
    def test_inference(): ...

Nothing is measured without `--joules` or such a mark. The energy is that of all processes on the measured domains
during the test, without its fixtures; concurrent tests (pytest-xdist) include each other's energy. A test with a budget
fails if its energy is unknown. JUnit files contain `joules` and `joules_provenance`. pytest finds the plugin of an installed
package; otherwise use `-p joulemap._pytest_plugin`.
"""

from __future__ import annotations

from typing import Any, Optional

import pytest

MAX_SHOWN_TESTS = 20


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("joulemap")
    group.addoption("--joules", action="store_true", help="print the energy of each test (joulemap)")


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "joules(budget): fail if the test uses more than this energy in J (joulemap)")
    config.stash[_energies_key] = []


_energies_key: Any = pytest.StashKey()


def _energy_budget(item: Any) -> Optional[float]:
    mark = item.get_closest_marker("joules")
    if mark is None:
        return None
    budget_j = mark.kwargs.get("budget", mark.args[0] if mark.args else None)
    if not isinstance(budget_j, (int, float)) or isinstance(budget_j, bool) or budget_j <= 0:
        raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.joules needs a budget in J: joules(budget=2.5)")
    return float(budget_j)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: Any) -> Any:
    budget_j = _energy_budget(item)
    if budget_j is None and not item.config.getoption("--joules"):
        yield
        return
    from . import measure

    with measure(item.nodeid) as window:
        outcome = yield
    energy = window.wait()
    item.config.stash[_energies_key].append((item.nodeid, energy, budget_j))
    item.user_properties.append(("joules", energy.joules))
    item.user_properties.append(("joules_provenance", energy.provenance))
    failure = None if outcome.excinfo is not None or budget_j is None else _budget_failure_text(energy, budget_j)
    if failure is not None:
        outcome.force_exception(pytest.fail.Exception(failure, pytrace=False))


def _budget_failure_text(energy: Any, budget_j: float) -> Optional[str]:
    if energy.joules is None:
        return f"cannot check the budget of {budget_j:g} J: the energy is unknown ({energy.reason})"
    if energy.joules - (energy.uncertainty_j or 0) > budget_j:
        return f"used {energy}; the budget is {budget_j:g} J"
    return None


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    energies = config.stash[_energies_key]
    if not energies or not config.getoption("--joules"):
        return
    terminalreporter.section("joules")
    for test_id, energy, budget in sorted(energies, key=lambda entry: -(entry[1].joules or 0))[:MAX_SHOWN_TESTS]:
        budget_text = "" if budget is None else f", budget {budget:g} J"
        terminalreporter.write_line(f"{test_id}: {energy}{budget_text}")
    if len(energies) > MAX_SHOWN_TESTS:
        terminalreporter.write_line(f"... and {len(energies) - MAX_SHOWN_TESTS} more")
