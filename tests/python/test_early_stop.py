"""jm.EarlyStop: losses over a known energy; the slope of the curve decides."""

from __future__ import annotations

import math
import random

import pytest

jm = pytest.importorskip("joulemap", reason="the build has a sanitizer inside, Python has not")

from joulemap import Energy, _early_stop  # noqa: E402


class Machine:
    """Each update costs 10 J more."""

    def __init__(self) -> None:
        self.joules = 0.0
        self.provenance: object = "estimated"

    def begin(self, name: str) -> Machine:
        return self

    def peek(self) -> Energy:
        if self.provenance is None:
            return Energy(None, None, 1.0, None, None, "no sensor: run joulemap doctor")
        return Energy(self.joules, 0.1, 1.0, None, self.provenance, "")


@pytest.fixture
def machine(monkeypatch) -> Machine:
    simulated = Machine()
    monkeypatch.setattr(_early_stop, "begin", simulated.begin)
    return simulated


def updates_until_stop(machine: Machine, early_stop, loss_at, most: int = 150) -> int:
    machine.joules = 0.0
    for number in range(1, most + 1):
        machine.joules += 10
        if early_stop.update(loss_at(machine.joules)):
            return number
    return most


def first_unprofitable_step(slope_at, price: float) -> int:
    return next(number for number in range(1, 1000) if slope_at(10.0 * number) * price < 1)


LOSS_CURVES = {
    "power": (lambda joules: 1 + 20 / joules, lambda joules: 20 / joules**2),
    "root": (lambda joules: 1 + 5 / joules**0.5, lambda joules: 2.5 / joules**1.5),
    "exponential": (lambda joules: 0.3 + 2 * math.exp(-joules / 150), lambda joules: 2 / 150 * math.exp(-joules / 150)),
    "logarithm": (lambda joules: 3 - 0.3 * math.log(joules), lambda joules: 0.3 / joules),
}


def test_early_stop_reason_counts_confirmations(machine):
    early_stop = jm.EarlyStop(joules_per_loss=2000, confirmations=3)
    reasons = []
    while not early_stop.stopped:
        machine.joules += 10
        early_stop.update(LOSS_CURVES["power"][0](machine.joules))
        reasons.append(early_stop.reason.split(":")[0])
    assert reasons[-4:-1] == ["continues", "continues until confirmed (1 of 3)", "continues until confirmed (2 of 3)"]


@pytest.mark.parametrize("name", LOSS_CURVES)
def test_early_stop_stops_where_loss_costs_more_than_its_price(machine, name):
    loss_at, slope_at = LOSS_CURVES[name]
    ideal_step = first_unprofitable_step(slope_at, 2000)
    early_stop = jm.EarlyStop(joules_per_loss=2000)
    assert ideal_step <= updates_until_stop(machine, early_stop, loss_at) <= 1.2 * ideal_step + 2
    assert (
        early_stop.stopped
        and early_stop.reason.startswith("stops after")
        and "the limit is 2000 J" in early_stop.reason
    )
    assert 1 / early_stop.slope.high > 2000


@pytest.mark.parametrize("name", LOSS_CURVES)
def test_noise_delays_the_stop_rather_than_bringing_it_forward(machine, name):
    loss_at, slope_at = LOSS_CURVES[name]
    ideal_step = first_unprofitable_step(slope_at, 2000)
    early, stops = 0, []
    for seed in range(8):
        source = random.Random(seed)
        stops.append(
            updates_until_stop(machine, jm.EarlyStop(2000), lambda joules: loss_at(joules) + source.gauss(0, 0.01))
        )
        early += stops[-1] < 0.8 * ideal_step
    assert early <= 1
    assert sorted(stops)[4] <= 1.7 * ideal_step + 2


def test_a_higher_price_trains_longer(machine):
    stops = [updates_until_stop(machine, jm.EarlyStop(price), LOSS_CURVES["power"][0]) for price in (500, 2000, 8000)]
    assert stops == sorted(stops) and stops[0] < stops[1] < stops[2]


def test_a_loss_that_falls_faster_and_faster_does_not_stop(machine):
    """A training begins slowly: 2.3 - 0.00002 J^2 costs 500 J for a unit at 50 J, and 250 J at 100 J."""
    early_stop = jm.EarlyStop(600)
    assert updates_until_stop(machine, early_stop, lambda joules: 2.3 - 0.00002 * joules**2, most=20) == 20
    assert not early_stop.stopped and 1 / early_stop.slope.value == pytest.approx(125, rel=0.1)


def test_a_loss_that_rises_stops(machine):
    early_stop = jm.EarlyStop(1e6)
    assert updates_until_stop(machine, early_stop, lambda joules: 1 + abs(joules - 100) / 100) < 40
    assert "the limit is" in early_stop.reason


def test_early_stop_never_stops_before_warm_up(machine):
    early_stop = jm.EarlyStop(1e-3, warm_up=3, evaluations=8, confirmations=1)
    assert updates_until_stop(machine, early_stop, lambda joules: 1 + 1 / joules) == 11
    assert len(early_stop.points) == 8


def test_stopping_needs_consecutive_confirmations(machine):
    once, three_confirmations = jm.EarlyStop(2000, confirmations=1), jm.EarlyStop(2000, confirmations=3)
    loss_at = LOSS_CURVES["power"][0]
    assert updates_until_stop(machine, three_confirmations, loss_at) == updates_until_stop(machine, once, loss_at) + 2


def test_an_unknown_energy_never_stops(machine):
    machine.provenance = None
    early_stop = jm.EarlyStop(1e-3)
    assert updates_until_stop(machine, early_stop, lambda joules: 1.0, most=30) == 30
    assert not early_stop.stopped and "doctor" in early_stop.reason and early_stop.provenance is None


def test_measured_and_estimated_energies_are_not_on_one_curve(machine):
    early_stop = jm.EarlyStop(1e-3, confirmations=1)
    updates_until_stop(machine, early_stop, lambda joules: 1 / joules, most=6)
    machine.provenance = "measured"
    machine.joules += 10
    assert not early_stop.update(0.1) and len(early_stop.points) == 1


def test_a_loss_that_is_not_finite_is_left_out(machine):
    early_stop = jm.EarlyStop(500)
    machine.joules = 10
    early_stop.update(1.0)  # the warm-up
    assert not early_stop.update(math.nan)
    assert early_stop.points == [] and early_stop.reason == "continues: the loss is nan"


def test_many_updates_are_a_bounded_number_of_points(machine):
    early_stop = jm.EarlyStop(1e9)
    for number in range(1, 1500):
        machine.joules = 0.1 * number
        early_stop.update(1 + 1 / machine.joules)
    assert len(early_stop.points) < _early_stop.MAX_LOSS_POINTS and not early_stop.stopped
    assert early_stop.slope.value == pytest.approx(1 / machine.joules**2, rel=0.1)


def test_begin_clears_points_of_the_previous_training(machine):
    early_stop = jm.EarlyStop(2000)
    update_count = updates_until_stop(machine, early_stop, LOSS_CURVES["power"][0])
    early_stop.begin()
    assert not early_stop.stopped and early_stop.points == []
    assert updates_until_stop(machine, early_stop, LOSS_CURVES["power"][0]) == update_count


def test_wrong_arguments_are_rejected(machine):
    for options in ({"joules_per_loss": 0}, {"joules_per_loss": math.inf}, {"joules_per_loss": 1, "evaluations": 2}):
        with pytest.raises(ValueError, match="must be"):
            jm.EarlyStop(**options)


def test_early_stop_measures_the_energy_of_the_machine(simulate):
    simulation = simulate("""
stop = jm.EarlyStop(joules_per_loss=1e-6, warm_up=0, evaluations=5, confirmations=1)
count = 0
while not stop.update(1 + 1 / (1 + count)):
    busy(0.05)
    count += 1
print(json.dumps([count, stop.provenance, stop.reason, [point.energy_j for point in stop.points]]))
""")
    count, provenance, reason, energies_j = simulation.result
    assert count >= 4 and provenance == "measured" and "(measured)" in reason
    assert energies_j == sorted(energies_j) and energies_j[-1] > energies_j[0]
