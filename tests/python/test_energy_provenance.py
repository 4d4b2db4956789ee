"""The text of a window has one provenance: estimates never appear among measured parts."""

from __future__ import annotations

import subprocess
import sys

import pytest

MADE_PRELUDE = """
from joulemap import _training_meter
from joulemap._energy import Domain, Energy

def domain(name, joules, provenance):
    return Domain(name, joules, 1.0, joules, provenance, True, "", "made", "")

def energy(joules, provenance, *domains):
    return Energy(joules, 1.0, 1.0, joules, provenance, "", domains=list(domains))

class Run:
    def __init__(self, *answers):
        self.answers = list(answers)

    def peek(self):
        return self.answers.pop(0)
"""


@pytest.fixture
def printed(environment):
    def run(program: str) -> str:
        command = [sys.executable, "-c", MADE_PRELUDE + program]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=60).stdout

    return run


def test_the_parts_of_a_measured_sum_are_those_that_were_measured(printed):
    parts = "domain('gpu0', 100, 'measured'), domain('package-0', 900, 'estimated')"
    result = printed(f"print(energy(100, 'measured', {parts}))")
    assert result.strip() == "100 J ± 1 J in 1 s (gpu0 100 J), measured"


def test_a_measurement_replaces_an_estimate_that_was_larger_and_never_falls(printed):
    result = printed(
        "meter = _training_meter.TrainingMeter()\n"
        "meter._training_window = Run(energy(900, 'estimated'), energy(100, 'measured'), energy(90, 'measured'))\n"
        "print([meter.current_energy().joules for _ in range(3)])\n"
    )
    assert result.strip() == "[900, 100, 100]"
