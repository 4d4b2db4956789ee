"""What is shown of a window has one provenance: estimates never stand among measured parts."""

from __future__ import annotations

from joulemap import _training_meter
from joulemap._energy import Domain, Energy


def domain(name: str, joules: float, provenance: str) -> Domain:
    return Domain(name, joules, 1.0, joules, provenance, True, "", "made", "")


def energy(joules: float, provenance: str, *domains: Domain) -> Energy:
    return Energy(joules, 1.0, 1.0, joules, provenance, "", domains=list(domains))


def test_the_parts_of_a_measured_sum_are_those_that_were_measured():
    parts = domain("gpu0", 100, "measured"), domain("package-0", 900, "estimated")
    assert str(energy(100, "measured", *parts)) == "100 J ± 1 J in 1 s (gpu0 100 J), measured"


def test_a_measurement_replaces_an_estimate_that_was_larger():
    class Run:
        answers = [energy(900, "estimated"), energy(100, "measured"), energy(90, "measured")]

        def peek(self) -> Energy:
            return self.answers.pop(0)

    meter = _training_meter.TrainingMeter.__new__(_training_meter.TrainingMeter)
    meter._run, meter._told = Run(), None
    assert [meter.so_far().joules for _ in range(3)] == [900, 100, 100], "and never falls within one provenance"
