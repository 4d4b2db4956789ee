"""jm.tune on a machine whose energy is known: what it finds, what it spends, when it stops."""

from __future__ import annotations

import math
import random
import sys
import warnings

import pytest

jm = pytest.importorskip("joulemap", reason="the build has a sanitizer inside, Python has not")
optuna = pytest.importorskip("optuna")

from joulemap import Energy, _tune  # noqa: E402
from joulemap._early_stop import LossPoint  # noqa: E402
from joulemap._tune_curve import cost_to_target  # noqa: E402
from joulemap._tune_model import CostModel, CostObservation  # noqa: E402
from joulemap._tune_space import ConfigSpace  # noqa: E402


class Machine:
    """A meter that only trainings advance, at 100 W."""

    def __init__(self) -> None:
        self.joules = 0.0
        self.provenance: object = "measured"

    def begin(self, name: str) -> Window:
        return Window(self)


class Window:
    def __init__(self, machine: Machine) -> None:
        self.machine, self.first, self.last = machine, machine.joules, None

    def end(self) -> None:
        self.last = self.machine.joules if self.last is None else self.last

    def peek(self) -> Energy:
        joules = (self.machine.joules if self.last is None else self.last) - self.first
        if self.machine.provenance is None:
            return Energy(None, None, joules / 100, None, None, "no sensor: run joulemap doctor")
        return Energy(joules, 0.0, joules / 100, None, self.machine.provenance, "")

    wait = peek


@pytest.fixture
def machine(monkeypatch) -> Machine:
    simulated = Machine()
    monkeypatch.setattr(_tune, "begin", simulated.begin)
    return simulated


BATCHES = [16, 32, 64, 128, 256, 512]


def true_energy_to_target_j(config: dict) -> float:
    """Energy to the target: least at a batch size of 128 and a rate of 0.01."""
    cost = 200 * math.exp(0.25 * abs(math.log2(config.get("batch", 128) / 128)))
    return cost * math.exp(0.3 * abs(math.log(config.get("rate", 0.01) / 0.01)))


def make_trainer(machine: Machine, epoch_j: float = 20, epochs: int = 60, noise: float = 0.0, seed: int = 1):
    source = random.Random(seed)

    def train(config, trial):
        needed = true_energy_to_target_j(config) * source.lognormvariate(0, noise)
        for epoch in range(epochs):
            machine.joules += epoch_j
            accuracy = 1 - 0.1 * needed / (epoch_j * (epoch + 1))  # reaches 0.9 after true_energy_to_target_j
            if trial.report(epoch, accuracy=accuracy):
                return

    return train


def tune(machine: Machine, **options):
    space = options.pop("space", {"batch": BATCHES})
    return jm.tune(options.pop("train", make_trainer(machine)), space, **{"at_least": {"accuracy": 0.9}, **options})


def test_tune_finds_the_cheapest_configuration(machine):
    result = tune(machine, runs_planned=100)
    assert result.best == {"batch": 128} and result.energy_j == pytest.approx(200, rel=0.15)
    assert result.low_j <= 200 <= result.high_j
    assert result.search_j == pytest.approx(machine.joules) == pytest.approx(sum(row.energy_j for row in result.trials))
    assert result.default_trial.config == {"batch": 16} and result.default_trial.energy_j == pytest.approx(
        440, rel=0.05
    )
    true_saving_j = 100 * (440 - 200) - result.search_j
    assert result.saving_j == pytest.approx(true_saving_j, rel=0.15)
    assert result.saving_low <= true_saving_j <= result.saving_high
    assert result.provenance == "measured" and result.notes == []


def test_tune_stops_when_a_trial_costs_more_than_it_saves(machine):
    spent = {}
    for runs in (0, 1, 20, 100):
        initial_energy_j = machine.joules
        result = tune(machine, space={"batch": BATCHES, "rate": jm.log_uniform(1e-4, 1)}, runs_planned=runs)
        spent[runs] = machine.joules - initial_energy_j
        assert result.reason.startswith("further search does not pay: the next trial would cost about")
        assert f"in {runs} later runs" in result.reason
    assert spent[0] == spent[1] < spent[20] < spent[100]  # few later runs: only the default is run
    assert spent[0] == pytest.approx(440, rel=0.05)


def test_tune_reports_a_search_that_does_not_pay_off(machine):
    result = tune(machine, runs_planned=1)
    assert result.best == {"batch": 16} and len(result.trials) == 1
    assert result.saving_j == pytest.approx(-440, rel=0.05) and result.break_even_runs is None


def test_the_same_seed_and_values_give_the_same_search(machine):
    space = {"batch": BATCHES, "rate": jm.log_uniform(1e-4, 1), "kind": ["a", "b"]}
    searches = [
        tune(machine, space=space, train=make_trainer(machine, noise=0.05), runs_planned=30, seed=seed)
        for seed in (3, 3, 4)
    ]
    rows = [[(row.config, row.state, round(row.energy_j, 6)) for row in result.trials] for result in searches]
    assert rows[0] == rows[1] != rows[2]
    assert searches[0].reason == searches[1].reason and searches[0].saving == pytest.approx(searches[1].saving)


@pytest.mark.parametrize("seed", range(3))
def test_a_continuous_factor_is_tuned(machine, seed):
    space = {"batch": BATCHES, "rate": jm.log_uniform(1e-4, 1)}
    result = tune(machine, space=space, default={"batch": 16, "rate": 0.1}, runs_planned=60, seed=seed)
    assert true_energy_to_target_j(result.best) < 0.5 * true_energy_to_target_j({"batch": 16, "rate": 0.1})
    assert true_energy_to_target_j(result.best) < 1.4 * 200
    assert result.saving_j > 0 and result.break_even_runs < 60


def test_a_trial_stops_when_it_has_become_more_expensive_than_the_best_one(machine):
    rows = tune(machine, default={"batch": 128}, runs_planned=50).trials
    assert [row.state for row in rows[:2]] == ["reached", "stopped"]
    assert all(row.energy_j <= 1.15 * 200 for row in rows if row.state == "stopped")


def test_a_trial_stops_when_its_curve_predicts_a_higher_cost(machine):
    def train(config, trial):
        for epoch in range(200):
            machine.joules += 1
            joules = epoch + 1
            accuracy = 1 - 0.1 * 60 / joules if config["kind"] == "good" else 0.8 - 0.5 / joules
            if trial.report(epoch, accuracy=accuracy):
                return

    result = tune(machine, train=train, space={"kind": ["good", "bad"]}, runs_planned=100)
    bad_trial = result.trials[1]
    assert (
        bad_trial.state == "stopped" and bad_trial.energy_j <= 12 and bad_trial.reason == "the target is expected never"
    )
    assert result.best == {"kind": "good"} and result.trials[0].energy_j == 60
    unpruned_result = tune(machine, train=train, space={"kind": ["good", "bad"]}, runs_planned=100, prune=False)
    assert unpruned_result.trials[1].state == "missed" and unpruned_result.trials[1].energy_j == 200


def test_a_configuration_below_the_accuracy_is_never_the_best_one(machine):
    def train(config, trial):
        for epoch in range(10):
            machine.joules += config["width"]
            if trial.report(epoch, min(0.1 * epoch, 0.7 if config["width"] < 8 else 0.9)):
                return

    result = tune(machine, train=train, space={"width": [16, 8, 4, 2, 1]}, runs_planned=1000)
    assert result.best == {"width": 8}
    assert {row.state for row in result.trials if row.config["width"] < 8} == {"missed"}
    assert result.best_trial.metrics["accuracy"] >= 0.9


def test_without_a_configuration_that_reaches_the_target_there_is_no_best_one(machine):
    result = tune(machine, at_least={"accuracy": 2.0}, runs_planned=10)
    assert result.best is None and result.saving_j is None and result.energy_j is None
    assert result.reason == "all 6 configurations were tried"
    assert "no configuration reached the target" in str(result)
    assert result.search_j == pytest.approx(6 * 60 * 20)


def test_a_default_that_misses_the_target_does_not_end_the_search(machine):
    def train(config, trial):
        for epoch in range(10):
            machine.joules += 10
            if trial.report(epoch, 0.95 if config["kind"] == "b" and epoch == 4 else 0.5):
                return

    result = tune(machine, train=train, space={"kind": ["a", "b"]})
    assert result.best == {"kind": "b"} and result.energy_j == pytest.approx(50, rel=0.15)
    assert result.saving_j is None and "did not reach the target" in result.notes[0]


def test_a_diverged_metric_ends_the_trial(machine):
    def train(config, trial):
        for epoch in range(10):
            machine.joules += 10
            if trial.report(epoch, loss=math.nan if config["rate"] == 1 and epoch == 2 else 1 / (epoch + 1)):
                return

    result = jm.tune(train, {"rate": [0.1, 1]}, at_most={"loss": 0.2}, runs_planned=100)
    assert [(row.state, row.energy_j) for row in result.trials] == [("reached", 50), ("diverged", 30)]


def test_an_exception_propagates_unless_it_is_caught(machine):
    class OutOfMemoryError(RuntimeError):
        pass

    def train(config, trial):
        machine.joules += 10
        if config["kind"] != "good":
            raise {"bug": ZeroDivisionError, "large": OutOfMemoryError}[config["kind"]]("too much\nmore")
        trial.report(0, 1.0)

    result = tune(machine, train=train, space={"kind": ["good", "large"]}, runs_planned=100)
    assert [row.state for row in result.trials] == ["reached", "failed"]
    assert result.trials[1].reason == "OutOfMemoryError: too much" and result.search_j == 20
    with pytest.raises(ZeroDivisionError):
        tune(machine, train=train, space={"kind": ["good", "bug"]}, runs_planned=100)
    caught = tune(machine, train=train, space={"kind": ["good", "bug"]}, runs_planned=100, catch=(ZeroDivisionError,))
    assert caught.trials[1].state == "failed"


def test_the_budget_of_energy_ends_the_search_within_a_report(machine):
    result = tune(machine, runs_planned=10_000, budget_j=700)
    assert result.reason == "the budget of 700 J is spent"
    assert 700 <= result.search_j <= 720
    assert result.best is not None and result.trials[-1].state == "stopped"


def test_the_number_of_trials_is_limited(machine):
    result = tune(machine, runs_planned=10_000, max_trials=2)
    assert len(result.trials) == 2 and result.reason == "2 trials were allowed"


def test_tune_without_sensors_minimizes_time_with_a_note(machine):
    machine.provenance = None
    result = tune(machine, runs_planned=100)
    assert result.best == {"batch": 128} and result.unit == "s" and result.cost == pytest.approx(2.0, rel=0.15)
    assert result.energy_j is None and result.search_j is None and result.saving_j is None and result.provenance is None
    assert result.notes == ["the energy is unknown (no sensor: run joulemap doctor): time is tuned instead"]
    assert "energy unknown" in str(result)


def test_a_budget_of_energy_that_cannot_be_kept_ends_the_search(machine):
    machine.provenance = None
    result = tune(machine, runs_planned=100, budget_j=1e9)
    assert len(result.trials) == 1 and "use budget_s" in result.reason


def test_estimated_energies_are_marked(machine):
    machine.provenance = "estimated"
    result = tune(machine)
    assert result.provenance == "estimated" and "energies are estimated, not measured" in result.notes
    assert all(row.provenance == "estimated" for row in result.trials) and "J (estimated)" in str(result)


def test_measured_and_estimated_energies_are_not_compared(machine):
    train = make_trainer(machine)

    def train_and_switch(config, trial):
        train(config, trial)
        machine.provenance = "measured" if config == {"batch": 16} else "estimated"

    result = tune(machine, train=train_and_switch, runs_planned=1000)
    assert len(result.trials) == 2 and "not compared" in result.reason


def test_a_mixture_weighs_energy_and_time_relative_to_the_default(machine):
    """A slow clock halves the energy and triples the time."""

    def train(config, trial):
        machine.joules += {"slow": 50, "fast": 100}[config["clock"]]
        return {"accuracy": 1.0}

    seconds = {50: 3.0, 100: 1.0}
    original_peek = Window.peek
    best_clocks = {}
    for energy_weight in (0.9, 0.5):

        def slower(self) -> Energy:
            joules = original_peek(self).joules
            return Energy(joules, 0.0, seconds.get(joules, joules / 50), None, "measured", "")

        Window.peek = Window.wait = slower  # type: ignore[method-assign]
        try:
            objective = {"energy": energy_weight, "time": 1 - energy_weight}
            result = tune(
                machine, train=train, space={"clock": ["fast", "slow"]}, objective=objective, runs_planned=100
            )
        finally:
            Window.peek = Window.wait = original_peek  # type: ignore[method-assign]
        best_clocks[energy_weight] = result.best["clock"]
        assert result.unit == "times the default" and result.default_trial.cost == pytest.approx(1.0)
    assert best_clocks == {0.9: "slow", 0.5: "fast"}


def test_time_alone_can_be_the_objective(machine):
    result = tune(machine, objective="time", runs_planned=100)
    assert result.unit == "s" and result.best == {"batch": 128} and result.cost == pytest.approx(2.0, rel=0.15)
    assert result.saving_j == pytest.approx(100 * (440 - 200) - result.search_j)  # energies are reported, too


def test_energy_after_the_target_counts_for_the_search_but_not_for_the_trial(machine):
    def train(config, trial):
        machine.joules += 10
        trial.report(0, 1.0)
        machine.joules += 90

    result = tune(machine, train=train, space={"kind": ["a"]})
    assert result.trials[0].energy_j == 10 and result.search_j == 100
    assert result.reason == "all 1 configurations were tried"


def test_without_a_target_the_whole_run_counts_and_a_note_warns(machine):
    def train(config, trial):
        machine.joules += 100 / config["workers"]

    result = jm.tune(train, {"workers": [1, 2, 4]}, runs_planned=100)
    assert result.best == {"workers": 4} and result.trials[0].state == "ended"
    assert "whatever it has learned" in result.notes[0]


def test_a_result_of_train_is_a_last_report(machine):
    def train(config, trial):
        machine.joules += config["cost"]
        return config["cost"] / 10

    result = tune(machine, train=train, space={"cost": [10, 9, 1]}, runs_planned=100)
    assert result.best == {"cost": 9} and result.best_trial.metrics == {"accuracy": 0.9}


def test_a_sampler_of_optuna_can_choose(machine):
    result = tune(machine, sampler=optuna.samplers.TPESampler(seed=1), runs_planned=1000)
    assert result.best == {"batch": 128}
    assert len({row.config["batch"] for row in result.trials}) == len(result.trials)


def test_the_study_of_optuna_contains_all_trials(machine):
    result = tune(machine, runs_planned=50)
    optuna_trials = [trial for trial in result.study.trials if trial.user_attrs]
    assert [trial.params for trial in optuna_trials] == [row.config for row in result.trials]
    assert result.study.best_params == result.best
    assert optuna_trials[1].state.name == {"reached": "COMPLETE", "stopped": "PRUNED"}[result.trials[1].state]
    assert optuna.logging.get_verbosity() == optuna.logging.INFO  # as before


def test_the_table_shows_all_trials(machine):
    result = tune(machine, runs_planned=100)
    text = str(result)
    assert text.startswith("best: batch=128\nsearch: ") and "net saving over 100 later runs" in text
    assert "reached (best)" in text and len(text.split("\n")) == 5 + 1 + len(result.trials)
    assert result.to_dicts()[0]["batch"] == 16 and result.to_dicts()[0]["metric_accuracy"] >= 0.9


@pytest.mark.parametrize("seed", [0, 2])
def test_costs_savings_and_break_even_agree_after_few_trials(machine, seed):
    """With these costs the mean of the estimate lies outside of its interval."""

    def train(config, trial):
        for epoch in range(40):
            machine.joules += config["batch"] / 32
            if trial.report(epoch, 1 - math.exp(-(epoch + 1) * config["rate"] * 3 * math.sqrt(32 / config["batch"]))):
                return

    space = {"batch": [64, 32, 128], "rate": jm.log_uniform(0.01, 1)}
    result = tune(machine, train=train, space=space, runs_planned=20, max_trials=4, seed=seed)
    assert result.low_j <= result.energy_j <= result.high_j
    assert result.saving_low <= result.saving_j <= result.saving_high
    saving_per_run_j = (result.saving_j + result.search_j) / 20
    assert result.break_even_runs == pytest.approx(result.search_j / saving_per_run_j)
    cost_line = next(line for line in str(result).split("\n") if line.startswith("cost of a run: "))
    default_j = float(cost_line.split()[-2])
    assert default_j - result.energy_j == pytest.approx(saving_per_run_j, rel=0.1)


def test_the_cost_of_a_default_that_is_the_best_is_stated_once(machine):
    def train(config, trial):
        machine.joules += 100 * config["factor"]

    result = jm.tune(train, {"factor": [1, 6, 40]}, runs_planned=5, max_trials=3)
    assert result.best == {"factor": 1} and result.break_even_runs is None
    cost_line = next(line for line in str(result).split("\n") if line.startswith("cost of a run: "))
    assert cost_line.split()[4] == cost_line.split()[-2], cost_line


def test_targets_name_their_metrics(machine):
    with pytest.raises(TypeError, match=r'at_least must name the metrics, as {"accuracy": 0.9}, not 0.9'):
        tune(machine, at_least=0.9)


def test_optuna_is_optional(machine, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(jm.JoulemapError, match=r"pip install 'joulemap\[tune\]'"):
        tune(machine)


def test_wrong_arguments_are_explained(machine):
    for options, message in [
        ({"space": {}}, "at least one factor"), ({"space": {"a": 3}}, "a must be a list"),
        ({"space": {"a": []}}, "no value"), ({"space": {"a": [1, 1]}}, "repeats"),
        ({"space": {"a": [object()]}}, "numbers, strings"), ({"default": {"batch": 5}}, "not in the space"),
        ({"default": {"lr": 5}}, "needs the factors batch"), ({"objective": "speed"}, "objective must be"),
        ({"runs_planned": -1}, "runs_planned"), ({"at_most": {"accuracy": 1}}, "at_least and at_most"),
        ({"space": {"cpu_max_mhz": [None, 2000]}}, "set_machine=True"),
    ]:  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=message):
            tune(machine, **options)
    with pytest.raises(ValueError, match="low < high"):
        jm.uniform(2, 1)
    with pytest.raises(ValueError, match="low > 0"):
        jm.log_uniform(0, 1)
    assert machine.joules == 0


def test_a_report_without_the_metric_of_the_target_is_explained(machine):
    with pytest.raises(ValueError, match="lacks accuracy"):
        tune(machine, train=lambda config, trial: trial.report(0, loss=1.0))


def test_coordinates_keep_the_order_of_numbers_and_separate_names():
    space = ConfigSpace(
        {"batch": [64, 16, 32], "kind": ["a", "b", "c"], "rate": jm.log_uniform(1e-4, 1), "n": jm.integers(2, 4)}
    )
    points = {batch: space.encode({"batch": batch, "kind": "b", "rate": 1e-2, "n": 3}) for batch in (16, 32, 64)}
    assert [points[batch][0] for batch in (16, 32, 64)] == [0, 0.5, 1]
    assert points[16][1:] == pytest.approx([0, math.sqrt(0.5), 0, 0.5, 0.5])
    assert space.factor_of_coordinate == [0, 1, 1, 1, 2, 3] and space.size == math.inf
    assert ConfigSpace({"n": jm.integers(2, 4), "kind": [True, None]}).size == 6
    for config in space.list_candidates(random.Random(1), space.first_config()):
        assert space.validate_config(config) == config


LOSS_CURVES = {"power": lambda joules: 0.2 + 5 / joules, "exponential": lambda joules: 0.1 + math.exp(-joules / 40),
          "logarithm": lambda joules: 1.5 - 0.25 * math.log(joules)}  # fmt: skip


@pytest.mark.parametrize("name", LOSS_CURVES)
def test_the_forecast_of_a_curve_contains_where_it_reaches_the_target(name):
    curve = LOSS_CURVES[name]
    truth = next(joules for joules in range(1, 1000) if curve(joules) <= 0.3)
    target_cost = cost_to_target([LossPoint(joules, curve(joules)) for joules in range(4, truth // 2, 2)], 0.3)
    assert target_cost.value == pytest.approx(truth, rel=0.15) and target_cost.low <= 1.05 * truth


def test_a_curve_that_saturates_above_the_target_never_reaches_it():
    points = [LossPoint(joules, 0.5 + 1 / joules**2) for joules in range(1, 30)]
    assert cost_to_target(points, 0.4) == (math.inf, math.inf)
    assert cost_to_target(points[:4], 0.4) is None


@pytest.mark.parametrize("seed", range(3))
def test_intervals_of_the_model_cover_unseen_costs(seed):
    """Smooth random costs: nine of ten lie in the 90 % interval."""
    source, covered_count, count = random.Random(seed), 0, 0
    for _ in range(12):
        a, b, c = (source.gauss(0, 1) for _ in range(3))
        cost = lambda x: 0.3 * (a * x + b * x * x + c * math.sin(3 * x))  # noqa: E731, B023
        points = [0.0, 1.0, 0.4, 0.7]
        model = CostModel([CostObservation([x], cost(x) - cost(0.0), 0.0) for x in points], [0], seed)
        for x in (0.1, 0.2, 0.3, 0.55, 0.85):
            sampled_costs = sorted(model.sample_costs([[x]], 400, seed)[:, 0])
            covered_count += sampled_costs[20] <= math.exp(cost(x) - cost(0.0)) <= sampled_costs[-21]
            count += 1
    assert covered_count >= 0.8 * count, f"seed {seed}"


def test_a_failed_default_trial_does_not_scale_costs(machine):
    """What the failed default spent says nothing about costs: failing configurations are expensive, not cheap."""
    source = random.Random(1)

    def train(config, trial):
        if config["kind"] == "large":
            machine.joules += 1
            raise MemoryError("out of memory")
        machine.joules += 100 * source.lognormvariate(0, 0.05)
        trial.report(0, 0.95 if config["kind"] == "good" else 0.5)

    result = tune(machine, train=train, space={"kind": ["large", "good", "poor"], "batch": [1, 2, 3]}, runs_planned=30)
    assert result.trials[0].state == "failed" and result.best["kind"] == "good"
    assert result.cost == pytest.approx(100, rel=0.3) and result.cost_low <= 100 <= result.cost_high
    assert "default" not in next(line for line in str(result).split("\n") if line.startswith("cost of a run"))
    assert result.saving is None and result.break_even_runs is None
    kinds = [row.config["kind"] for row in result.trials]
    later_kinds = kinds[kinds.index("good") + 1 :]
    assert "good" in later_kinds and "large" not in later_kinds[: later_kinds.index("good")]  # not next to what failed


def test_a_default_that_fails_without_any_energy_does_not_end_the_search(machine):
    def train(config, trial):
        if config["kind"] == "large":
            raise MemoryError("out of memory")
        machine.joules += 50
        return 1.0

    assert tune(machine, train=train, space={"kind": ["large", "good"]}).best == {"kind": "good"}


def test_a_trial_with_energy_of_another_provenance_is_not_the_best_one(machine):
    def train(config, trial):
        machine.joules += 100 if config["kind"] == "a" else 10
        machine.provenance = "measured" if config["kind"] == "a" else "estimated"
        trial.report(0, 1.0)

    result = tune(machine, train=train, space={"kind": ["a", "b", "c"]}, runs_planned=1000)
    assert result.best == {"kind": "a"} and result.saving is None and result.saving_j is None
    assert result.study.best_params == {"kind": "a"} and "not compared" in result.reason
    machine.provenance = "measured"
    time_result = tune(machine, train=train, space={"kind": ["a", "b"]}, objective="time", runs_planned=1000)
    assert time_result.best == {"kind": "b"} and time_result.saving > 0 and time_result.saving_j is None


def test_a_trial_is_not_stopped_by_an_energy_of_another_provenance(machine):
    def train(config, trial):
        if config["kind"] == "b":
            machine.provenance = "estimated"
        for epoch in range(3):
            machine.joules += 100
            trial.report(epoch, 0.1)
            if config["kind"] == "a":
                return trial.report(epoch, 1.0)
        return None

    assert [row.state for row in tune(machine, train=train, space={"kind": ["a", "b"]}, runs_planned=99).trials] == [
        "reached", "missed",
    ]  # fmt: skip


def test_the_returned_value_of_report_is_no_metric(machine):
    def train(config, trial):
        machine.joules += 10
        return trial.report(0, loss=0.9)

    result = jm.tune(train, {"kind": ["a"]}, at_most={"loss": 0.5})
    assert result.trials[0].state == "missed" and result.trials[0].metrics == {"loss": 0.9}
    for report in (lambda trial: trial.report(0, True), lambda trial: trial.report(0, accuracy=False)):
        with pytest.raises(TypeError, match="accuracy must be a number, not"):
            tune(machine, train=lambda config, trial: report(trial), space={"kind": ["a"]})  # noqa: B023


def test_a_returned_number_without_a_target_is_ignored(machine):
    def train(config, trial):
        machine.joules += 10
        return 0.25

    result = jm.tune(train, {"kind": ["a"]})
    assert result.trials[0].state == "ended" and result.trials[0].metrics == {}


def test_returned_metrics_do_not_stop_a_trial_that_has_ended(machine):
    def train(config, trial):
        machine.joules += config["cost"]
        return {"accuracy": 0.95 if config["cost"] == 10 else 0.1}

    result = tune(machine, train=train, space={"cost": [10, 100]}, runs_planned=10_000)
    assert [row.state for row in result.trials] == ["reached", "missed"]
    spent = tune(
        machine,
        train=lambda *train_arguments: {**train(*train_arguments), "accuracy": 0.1},
        space={"cost": [10, 100]},
        budget_j=5,
    )
    assert spent.trials[0].state == "missed" and spent.reason == "the budget of 5 J is spent"


def test_an_exception_after_the_target_does_not_undo_it(machine):
    def train(config, trial):
        machine.joules += 10
        trial.report(0, 1.0)
        raise OSError("the disk is full")

    row = tune(machine, train=train, space={"kind": ["a"]}, catch=(OSError,)).trials[0]
    assert row.state == "reached" and row.energy_j == 10
    assert row.reason == "the target is reached after 1 reports; then OSError: the disk is full"


def test_a_trial_that_costs_nothing_measurable_is_not_compared(machine):
    def train(config, trial):
        machine.joules += config["cost"]
        return 1.0

    result = tune(machine, train=train, space={"cost": [100, 0, 50]}, runs_planned=1000)
    assert result.best == {"cost": 50} and len(result.trials) == 3
    number = next(row.number for row in result.trials if row.config == {"cost": 0})
    assert result.notes == [f"trial {number} cost nothing that can be measured: it is not compared"]
    mixture_result = tune(machine, train=train, space={"cost": [0, 50]}, objective={"energy": 0.5, "time": 0.5})
    assert len(mixture_result.trials) == 1 and "cost nothing that can be measured" in mixture_result.reason


@pytest.mark.parametrize("grid", [BATCHES, [64]])
def test_a_sampler_that_runs_out_of_configurations_ends_the_search(machine, grid):
    sampler = optuna.samplers.GridSampler({"batch": grid}, seed=1)
    result = tune(machine, sampler=sampler, runs_planned=10**6, prune=False)
    assert {row.config["batch"] for row in result.trials} == {16, *grid}
    assert result.reason in ("the sampler has no further configuration", "all 6 configurations were tried")
    states = [trial.state for trial in result.study.trials if trial.user_attrs]
    assert len(states) == len(result.trials) and all(state.is_finished() for state in states)
    with pytest.raises(RuntimeError):
        result.study.stop()  # that of Optuna again


def test_a_sampler_of_all_combinations_ends_the_search(machine):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.BruteForceSampler(seed=1)
    space = {"batch": BATCHES, "rate": [0.01, 0.1]}
    assert len(tune(machine, sampler=sampler, space=space, runs_planned=10**6, prune=False).trials) == 12


def test_settings_that_the_machine_does_not_offer_are_refused_before_the_search(machine, monkeypatch):
    class LimitedSettings(_tune.MachineSettings):
        def __init__(self) -> None:
            self.notes = []

        def __enter__(self):
            return self

        def __exit__(self, *exception) -> None:
            pass

        def _list_path_values(self, name, value):
            if value is not None and value > 250:
                raise jm.JoulemapError(f"{name}={value!r} is not possible")
            return []

    monkeypatch.setattr(_tune, "MachineSettings", LimitedSettings)
    for values in ([None, 150, 400], jm.integers(100, 400)):
        with pytest.raises(jm.JoulemapError, match="gpu_power_limit_w=400"):
            tune(machine, space={"gpu_power_limit_w": values}, default={"gpu_power_limit_w": values[0] if isinstance(
                values, list) else 100}, set_machine=True)  # fmt: skip
    assert machine.joules == 0


def test_values_of_a_configuration_are_those_of_the_space():
    space = ConfigSpace({"n": jm.integers(1, 3), "rate": jm.uniform(0, 2), "batch": [16, 32]})
    config = space.validate_config({"n": 2.0, "rate": 1, "batch": 32.0})
    assert [repr(value) for value in config.values()] == ["2", "1.0", "32"]
    for invalid_values in ({"n": 2.5}, {"n": True}, {"n": "2"}, {"rate": "1"}, {"rate": math.nan}, {"batch": 17}):
        with pytest.raises(ValueError, match="is not in the space"):
            space.validate_config({**config, **invalid_values})
    with pytest.raises(ValueError, match="needs integers"):
        jm.integers(1.5, 3)


@pytest.mark.parametrize("noise, least", [(0.02, 0.9), (0.1, 0.85), (0.3, 0.7)])
def test_intervals_of_the_model_cover_costs_that_vary_between_runs(noise, least):
    """One run of each of six configurations; the interval of the one that was the cheapest by chance, too."""
    source, covered_counts, searches = random.Random(7), {"best": 0, "saving": 0}, 60
    for seed in range(searches):
        slope, centre = source.uniform(0.2, 2.4), source.uniform(0, 1)
        points = [index / 5 for index in range(6)]
        source.shuffle(points)
        costs = [math.exp(slope * abs(point - centre)) for point in points]
        noisy_costs = [cost * source.lognormvariate(0, noise) for cost in costs]
        best_index = min(range(6), key=noisy_costs.__getitem__)
        observations = [
            CostObservation([point], math.log(cost / noisy_costs[0]), 0.0) for point, cost in zip(points, noisy_costs)
        ]
        sampled_costs = (
            CostModel(observations, [0], seed).sample_costs([[points[0]], [points[best_index]]], 1000, seed)
            * noisy_costs[0]
        )
        mean_of_runs = math.exp(noise**2 / 2)
        covered_counts["best"] += is_covered(sampled_costs[:, 1], costs[best_index] * mean_of_runs)
        covered_counts["saving"] += is_covered(
            sampled_costs[:, 0] - sampled_costs[:, 1], (costs[0] - costs[best_index]) * mean_of_runs
        )
    assert min(covered_counts.values()) >= least * searches, covered_counts


def is_covered(samples, value: float) -> bool:
    """The value lies in the 90 % interval of the draws."""
    sorted_samples = sorted(samples)
    return sorted_samples[len(sorted_samples) // 20] <= value <= sorted_samples[-1 - len(sorted_samples) // 20]
