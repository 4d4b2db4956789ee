"""jm.predict_total: trainings in virtual time whose energy is known, and one on the simulated machine."""

from __future__ import annotations

import gc
import random

import pytest

jm = pytest.importorskip("joulemap", reason="the build has a sanitizer inside, Python has not")

from joulemap import Domain, Energy, _forecast, _marks  # noqa: E402

WATTS = 100.0


class Machine:
    """Virtual time and energy; begin() replaces that of real windows."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.joules = 0.0
        self.provenance: object = "estimated"
        self.settles = True

    def work(self, seconds: float, watts: float = WATTS) -> None:
        self.now_s += seconds
        self.joules += seconds * watts

    def begin(self, name: str) -> "Window":
        return Window(self)


class Window:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._begin = machine.now_s, machine.joules
        self._end: object = None

    def end(self) -> None:
        if self._end is None:
            machine = self._machine
            self._end = machine.now_s, machine.joules, machine.provenance

    def peek(self) -> Energy:
        return self.wait()

    def wait(self) -> Energy:
        now_s, now_j, provenance = self._end
        seconds, joules = now_s - self._begin[0], now_j - self._begin[1]
        if provenance is None:
            return Energy(
                None, None, seconds, None, None, "no sensor: run joulemap doctor", settled=self._machine.settles
            )
        domains = [
            Domain("package-0", 0.75 * joules, 0.1, None, provenance, True, "", "", ""),
            Domain("dram-0", 0.25 * joules, 0.1, None, provenance, True, "", "", ""),
        ]
        return Energy(
            joules, 0.1, seconds, None, provenance, "", settled=self._machine.settles, domains=domains,
        )  # fmt: skip


@pytest.fixture
def machine(monkeypatch) -> Machine:
    simulated = Machine()
    monkeypatch.setattr(_forecast, "begin", simulated.begin)
    monkeypatch.setattr(_forecast.time, "monotonic", lambda: simulated.now_s)
    return simulated


class Training:
    """1000 steps of 20 ms; the first ones are slower. Evaluates every 100 steps (0.4 s), saves every 200 (0.3 s)."""

    steps, per_epoch = 1000, 100

    def __init__(
        self, machine: Machine, step_s=lambda index: 0.02, evaluate_s: float = 0.4, save_s: float = 0.3
    ) -> None:
        self.machine, self.step_s, self.evaluate_s, self.save_s = machine, step_s, evaluate_s, save_s

    def run(self, forecast, end_step: int, first_step: int = 0) -> None:
        """Runs the steps from `first_step` up to `end_step`, and marks the beginning of the step after them."""
        if first_step == 0:
            self.machine.work(0.5)  # setup
            forecast.step()
        for index in range(first_step, end_step):
            self.machine.work(1.0 if index == 0 else 0.06 if index < 5 else self.step_s(index))
            if (index + 1) % self.per_epoch == 0 and self.evaluate_s:
                self.machine.work(self.evaluate_s, 60)
            if (index + 1) % 200 == 0 and self.save_s:
                self.machine.work(self.save_s, 30)
            forecast.step()

    def finish(self, forecast, first_step: int) -> tuple:
        """Runs the rest; returns the energy and the time of the whole training."""
        self.run(forecast, self.steps, first_step)
        energy = forecast.end()
        return energy.joules, energy.seconds


PAUSE_INTERVALS = {"evaluation": 100, "checkpoint": 200}


def test_after_5_percent_the_total_is_known_although_the_first_steps_are_slower(machine):
    training = Training(machine, evaluate_s=0, save_s=0)
    forecast = jm.predict_total(1000, every={})
    training.run(forecast, 50)
    total = forecast.total()
    joules, seconds = training.finish(forecast, 50)
    assert total.energy_j == pytest.approx(joules, rel=0.001)
    assert total.time_s == pytest.approx(seconds, rel=0.001)
    assert total.low_j <= joules <= total.high_j and total.low_s <= seconds <= total.high_s
    assert total.warm_up_steps == 5
    assert total.provenance == "estimated"
    assert {domain.name: domain.energy_j for domain in total.domains} == {
        "package-0": pytest.approx(0.75 * joules, rel=0.001), "dram-0": pytest.approx(0.25 * joules, rel=0.001),
    }  # fmt: skip
    assert forecast.total().energy_j == joules  # after end(): measured


def test_each_evaluation_and_checkpoint_is_counted_once_one_was_seen(machine):
    training = Training(machine)
    forecast = jm.predict_total(1000, every=PAUSE_INTERVALS)
    training.run(forecast, 210)
    total = forecast.total()
    joules, seconds = training.finish(forecast, 210)
    assert total.energy_j == pytest.approx(joules, rel=0.005)
    assert total.time_s == pytest.approx(seconds, rel=0.005)
    evaluation, checkpoint = total.recurring
    assert (evaluation.name, evaluation.period, evaluation.seen, evaluation.left) == ("evaluation", 100, 2, 8)
    assert evaluation.time_s == pytest.approx(0.4, rel=0.02) and evaluation.energy_j == pytest.approx(24, rel=0.02)
    assert (checkpoint.seen, checkpoint.left) == (1, 4)
    assert checkpoint.time_s == pytest.approx(0.3, rel=0.03)


def test_work_that_did_not_occur_yet_is_noted_and_widens_the_interval_upwards(machine):
    training = Training(machine)
    forecast = jm.predict_total(1000, every=PAUSE_INTERVALS)
    training.run(forecast, 50)
    total = forecast.total()
    joules, _ = training.finish(forecast, 50)
    assert total.energy_j < 0.95 * joules < joules <= total.high_j
    assert total.high_j - total.energy_j > 3 * (total.energy_j - total.low_j)
    assert [note.split(":")[0] for note in total.notes] == [
        "no evaluation has ended yet",
        "no checkpoint has ended yet",
    ]
    assert [recurring_work.seen for recurring_work in total.recurring] == [0, 0]


def test_the_number_of_its_batches_predicts_an_evaluation_before_the_first(machine):
    training = Training(machine, save_s=0)  # 60 batches at a third of a step each take 0.4 s
    forecast = jm.predict_total(epochs=10, steps_per_epoch=range(100), evaluation_steps=range(60))
    training.run(forecast, 50)
    total = forecast.total()
    _, seconds = training.finish(forecast, 50)
    assert total.time_s == pytest.approx(seconds, rel=0.01)
    assert total.low_s < seconds < total.high_s
    assert "60 batches" in total.notes[0]


def test_undeclared_evaluations_are_found_at_the_ends_of_epochs_and_at_equal_distances(machine):
    for options in ({"epochs": 10, "steps_per_epoch": 100}, {"steps": 1000}):
        training = Training(machine, save_s=0)
        forecast = jm.predict_total(**options)
        training.run(forecast, 250)
        total = forecast.total()
        joules, _ = training.finish(forecast, 250)
        assert total.energy_j == pytest.approx(joules, rel=0.005)
        assert [(recurring_work.period, recurring_work.left) for recurring_work in total.recurring] == [(100, 8)]


def test_random_pauses_are_part_of_the_rate(machine):
    source = random.Random(3)
    training = Training(machine, lambda index: 0.3 if source.random() < 0.03 else 0.02, evaluate_s=0, save_s=0)
    forecast = jm.predict_total(1000)
    training.run(forecast, 500)
    total = forecast.total()
    joules, _ = training.finish(forecast, 500)
    assert total.recurring == []
    assert total.low_j < joules < total.high_j


def autocorrelated_step_times(seed: int):
    """Steps of 20 ms with noise whose correlation decays over 20 steps: 10 % of a step."""
    source, state = random.Random(seed), [0.0]

    def step_s(index: int) -> float:
        state[0] = 0.95 * state[0] + source.gauss(0, 0.31)
        return 0.02 * max(0.2, 1 + 0.1 * state[0])

    return step_s


def test_the_interval_covers_the_total_under_autocorrelated_noise_and_narrows(machine):
    covered_count, widths = 0, {50: [], 250: [], 500: []}
    for seed in range(60):
        training = Training(machine, autocorrelated_step_times(seed))
        forecast = jm.predict_total(1000, every=PAUSE_INTERVALS, evaluation_steps=40)
        totals, first_step = [], 0
        for end_step in widths:
            training.run(forecast, end_step, first_step)
            totals.append(forecast.total())
            widths[end_step].append(totals[-1].high_j - totals[-1].low_j)
            first_step = end_step
        joules, _ = training.finish(forecast, first_step)
        covered_count += sum(total.low_j <= joules <= total.high_j for total in totals)
    assert covered_count >= 0.88 * 180  # at 90 %
    early, later_width, last_width = (sum(values) for values in widths.values())
    assert early > 1.5 * later_width > 1.5 * last_width


def test_a_drift_moves_the_prediction_and_widens_the_interval_in_its_direction(machine):
    training = Training(machine, lambda index: 0.02 * (1 + 0.1 * min(1.0, index / 400)), evaluate_s=0, save_s=0)
    forecast = jm.predict_total(1000, every={})
    training.run(forecast, 250)
    total = forecast.total()
    _, seconds = training.finish(forecast, 250)
    assert total.low_s < seconds < total.high_s
    assert any("slower or faster" in note for note in total.notes)
    assert total.high_s - total.time_s > total.time_s - total.low_s


def test_work_measured_separately_is_not_part_of_the_rate(machine):
    forecast = jm.predict_total(400)
    for index in range(150):
        forecast.step()
        machine.work(0.02)
        if index % 50 == 49:
            with forecast.other("evaluation"):
                machine.work(0.05, 60)
    total = forecast.total()
    assert total.time_s == pytest.approx(400 * 0.02 + 8 * 0.05, rel=0.01)
    assert [(recurring_work.name, recurring_work.period) for recurring_work in total.recurring] == [("evaluation", 50)]
    assert total.recurring[0].energy_j == pytest.approx(3.0)


def test_an_evaluation_before_the_first_step_predicts_all_of_them(machine):
    training = Training(machine, save_s=0)
    forecast = jm.predict_total(1000, every={"evaluation": 100})
    with forecast.other("evaluation"):
        machine.work(0.4, 60)
    training.run(forecast, 50)
    total = forecast.total()
    joules, _ = training.finish(forecast, 50)
    assert (total.recurring[0].seen, total.recurring[0].left) == (1, 10)
    assert total.energy_j == pytest.approx(joules, rel=0.002)
    assert total.notes == []


def test_marks_of_the_loop_count_as_steps_and_epochs(machine):
    forecast = jm.predict_total(epochs=4)
    assert forecast.total().reason == "the number of steps is known after the first epoch"
    for index in range(100):
        if index % 50 == 0:
            jm.epoch()
        jm.step()
        machine.work(0.02)
    total = forecast.total()
    assert total.steps == 200
    assert total.time_s == pytest.approx(4.0, rel=0.02)


def test_steps_that_the_loop_marks_twice_count_once(machine):
    forecast = jm.predict_total(200)
    for _ in range(5):
        jm.step()
        machine.work(0.02)
    for _ in range(10):
        forecast.step()
        jm.step()
        machine.work(0.02)
    total = forecast.total()
    assert total.done == 9
    assert total.spent_s == pytest.approx(14 * 0.02)  # the steps before are part of the setup


def test_epochs_of_the_loop_count_beside_explicit_steps(machine):
    forecast = jm.predict_total(epochs=4)
    for index in range(100):
        if index % 50 == 0:
            jm.epoch()
        forecast.step()
        machine.work(0.02)
    assert forecast.total().steps == 200


def test_a_deleted_forecast_no_longer_receives_marks(machine):
    gc.collect()
    jm.step()  # removes those of the tests before
    listener_count = len(_marks.mark_listeners)
    forecast = jm.predict_total(10)
    assert len(_marks.mark_listeners) == listener_count + 1
    del forecast
    gc.collect()
    jm.step()
    assert len(_marks.mark_listeners) == listener_count


def test_without_a_sensor_the_time_is_predicted_and_the_energy_has_a_reason(machine):
    machine.provenance = None
    forecast = jm.predict_total(1000, every={})
    Training(machine, evaluate_s=0, save_s=0).run(forecast, 100)
    total = forecast.total()
    assert total.energy_j is None and "doctor" in total.reason and total.provenance is None
    assert total.time_s == pytest.approx(0.5 + 1 + 4 * 0.06 + 995 * 0.02, rel=0.001)
    assert "energy unknown" in str(total)


def test_measured_and_estimated_energies_are_not_added(machine):
    forecast = jm.predict_total(1000, every={})
    training = Training(machine, evaluate_s=0, save_s=0)
    training.run(forecast, 50)
    machine.provenance = "measured"
    training.run(forecast, 100, 50)
    assert forecast.total().energy_j is None
    assert "not added" in forecast.total().reason


def test_a_long_training_keeps_a_bounded_number_of_blocks(machine):
    forecast = jm.predict_total(20_000, every={"evaluation": 500})
    training = Training(machine, save_s=0)
    training.per_epoch = 500
    training.run(forecast, 15_000)
    assert len(forecast._blocks) <= _forecast.MAX_BLOCKS
    total = forecast.total()
    assert total.time_s == pytest.approx(0.5 + 1 + 4 * 0.06 + 19_995 * 0.02 + 40 * 0.4, rel=0.002)


def test_steps_whose_energy_is_not_final_are_left_out(machine):
    machine.settles = False
    forecast = jm.predict_total(1000)
    Training(machine).run(forecast, 50)
    assert forecast.total().energy_j is None and "settled" in str(forecast.total())
    assert forecast.total(wait=True).energy_j > 0


def test_work_measured_twice_in_a_step_is_one_occurrence(machine):
    forecast = jm.predict_total(1000)
    for index in range(300):
        forecast.step()
        machine.work(0.02)
        for _ in range(2):
            with forecast.other("data"):
                machine.work(0.01)
        if index % 100 == 99:
            for seconds in (0.4, 0.2):
                with forecast.other("evaluation"):
                    machine.work(seconds)
    forecast.step()
    total = forecast.total()
    assert total.time_s == pytest.approx(1000 * 0.04 + 10 * 0.6, rel=0.002)
    data, evaluation = total.recurring
    assert (data.period, data.seen, data.time_s) == (1, 300, pytest.approx(0.02))
    assert (evaluation.period, evaluation.seen, evaluation.left, evaluation.time_s) == (100, 3, 7, pytest.approx(0.6))
    assert total.low_s < 46 < total.high_s < 47  # the two evaluations of an epoch are no spread


def test_work_measured_in_each_step_keeps_no_energies(machine):
    forecast = jm.predict_total(20_000, every={})
    for _ in range(10_000):
        forecast.step()
        machine.work(0.02)
        with forecast.other("data"):
            machine.work(0.005)
    gc.collect()
    live_objects = [entry for entry in gc.get_objects() if isinstance(entry, (Energy, Window))]
    assert len(live_objects) < 2000
    assert forecast.total().time_s == pytest.approx(20_000 * 0.025, rel=0.001)


def test_work_before_steps_are_marked_explicitly_is_part_of_the_setup(machine):
    forecast = jm.predict_total(200, every={"evaluation": 50})
    for _ in range(5):
        jm.step()
        machine.work(0.02)
    with forecast.other("evaluation"):
        machine.work(0.4)
    for _ in range(20):
        forecast.step()
        machine.work(0.02)
    total = forecast.total()
    assert total.time_s == pytest.approx(205 * 0.02 + 5 * 0.4, rel=0.01)
    assert (total.recurring[0].seen, total.recurring[0].left) == (1, 4)


@pytest.mark.parametrize("part", ["steps", "data"])
def test_a_duration_that_is_unknown_makes_the_total_unknown(machine, part, monkeypatch):
    """As in a forked child, whose windows have no time."""
    forecast = jm.predict_total(100)
    for index in range(20):
        forecast.step()
        machine.work(0.02)
        if index == 12:
            original_begin = machine.begin
            unknown = Energy(None, None, None, None, None, "the process was forked", settled=True)
            lost_window_class = type("Lost", (Window,), {"wait": lambda self: unknown})
            replacement_begin = lambda name: (  # noqa: E731
                lost_window_class(machine) if name == part else original_begin(name)  # noqa: B023
            )
            monkeypatch.setattr(_forecast, "begin", replacement_begin)
        with forecast.other("data"):
            machine.work(0.01)
    total = forecast.total()
    assert total.time_s is None and total.energy_j is None
    assert total.reason == {"steps": "the process was forked", "data": "the duration of a part is unknown"}[part]
    assert "unknown" in str(total)


def test_wrong_arguments_are_rejected():
    for options, message in (
        ({}, "needs steps"), ({"steps": 0}, "positive"), ({"steps": 10, "every": {"save": 1.5}}, "positive"),
        ({"epochs": 2, "steps_per_epoch": iter([])}, "have a length"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=message):
            jm.predict_total(**options)


def test_on_a_machine_with_counters_the_prediction_is_measured(simulate):
    simulation = simulate("""
forecast = jm.predict_total(60, every={})
for index in range(60):
    forecast.step()
    if index == 50:
        total = forecast.total(wait=True)
    busy(0.02)
energy = forecast.end()
print(json.dumps([total.provenance, total.energy_j, total.spent_j, energy.joules, describe_energy(energy),
                  [domain.name for domain in total.domains if domain.counted], total.done]))
""")
    provenance, predicted_j, spent_j, joules, window, domains, completed_step_count = simulation.result
    assert provenance == "measured"
    assert 0 < spent_j < predicted_j
    assert completed_step_count >= 40 and set(domains) == {"package-0", "dram-0"}
    assert simulation.contains_truth(window)
    assert predicted_j == pytest.approx(joules, rel=0.5)  # other programs share the processor: not a test of accuracy


@pytest.mark.parametrize(
    "options, message",
    [
        ({"epochs": 3, "steps_per_epoch": 0}, "steps_per_epoch must be a positive integer, not 0"),
        ({"epochs": 0, "steps_per_epoch": 5}, "epochs must be a positive integer, not 0"),
        ({"steps": 0}, "^steps must be a positive integer, not 0"),
    ],
)
def test_the_error_names_the_wrong_argument(options, message):
    with pytest.raises(ValueError, match=message):
        jm.predict_total(**options)
