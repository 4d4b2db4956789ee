# SPDX-License-Identifier: Apache-2.0
"""jm.tune: searches the configuration of a training that reaches a target with the least energy or time. It counts the
energy of the search, and stops when a further trial is expected to cost more than it saves in later runs."""

from __future__ import annotations

import contextlib
import importlib
import math
import random
import statistics
from collections.abc import Iterator, Mapping
from typing import Any, Callable, Optional, Union

from ._early_stop import LossPoint
from ._energy import Energy, _format_number
from ._library import JoulemapError
from ._machine_settings import SETTING_NAMES, MachineSettings
from ._measure import Measurement, begin
from ._tune_curve import TargetCost, cost_to_target
from ._tune_model import CostModel, TrialGain, CostObservation
from ._tune_result import SearchOutcome, TrialRow, TuneResult
from ._tune_space import ConfigSpace, Range, integers, log_uniform, uniform

__all__ = ["Trial", "TuneResult", "integers", "log_uniform", "tune", "uniform"]

# A trial whose forecast is above the best cost stops after this number of such forecasts in a row.
TARGET_CONFIRMATIONS = 2
# The cost of a configuration that misses the target counts as this multiple of the default (if that missed it, of the
# first trial that reached it), and forecasts not as more.
MISSED_TARGET_FACTOR = 4.0
# Standard deviation of the logarithm of a cost that is a forecast, and the factor where no forecast was possible.
FORECAST_LOG_STD = 0.25
UNKNOWN_FORECAST_COST_FACTOR = 1.25
# As long as no configuration has reached the target, the search ends after this number of trials.
MAX_TRIALS_WITHOUT_TARGET = 12
MAX_TRIALS = 200
# A sampler that proposes only tried configurations this number of times is not asked again for this trial.
SAMPLER_ATTEMPTS = 20
# Stopped trials are assumed to have spent the whole best cost: the prior weighs as much as this number of trials.
PRIOR_STOPPED_TRIALS = 2
INTERVAL_DRAWS = 4000


class TargetMetrics:
    """The metrics that a training must reach: {"accuracy": 0.9} at least, {"loss": 0.3} at most."""

    def __init__(self, at_least: Optional[Mapping], at_most: Optional[Mapping]) -> None:
        # name -> (sign, limit): sign x metric must be at most sign x limit
        self.limits = {name: (-1.0, float(limit)) for name, limit in (at_least or {}).items()}
        for name, limit in (at_most or {}).items():
            if name in self.limits:
                raise ValueError(f"{name} is in at_least and at_most")
            self.limits[name] = (1.0, float(limit))

    def collect_metrics(self, value: Any, metrics: Mapping) -> dict:
        """The metrics of a report as numbers; `value` is the metric of the only goal."""
        found = dict(metrics)
        if value is not None:
            if len(self.limits) != 1:
                raise TypeError("name the metrics: trial.report(epoch, accuracy=0.9)")
            found[next(iter(self.limits))] = value
        if boolean := next((name for name, metric in found.items() if _is_boolean(metric)), None):
            raise TypeError(f"{boolean} must be a number, not {found[boolean]!r}")
        found = {name: float(metric) for name, metric in found.items()}
        missing = [name for name in self.limits if name not in found]
        if missing:
            raise ValueError(f"the report lacks {', '.join(missing)}, which at_least or at_most names")
        return found

    def has_reached_targets(self, metrics: Mapping) -> bool:
        return bool(self.limits) and all(
            sign * metrics[name] <= sign * limit for name, (sign, limit) in self.limits.items()
        )

    def forecast_target_cost(self, costs: list, history: list) -> Optional[TargetCost]:
        """The cost at which the last goal is reached. None if a curve is not determined."""
        found = []
        for name, (sign, limit) in self.limits.items():
            points = [LossPoint(cost, sign * metrics[name]) for cost, metrics in zip(costs, history)]
            if points[-1].loss <= sign * limit:
                continue  # this goal is reached
            reach = cost_to_target(points, sign * limit)
            if reach is None:
                return None
            found.append(reach)
        return TargetCost(max(one.value for one in found), max(one.low for one in found)) if found else None


class CostObjective:
    """The cost that is minimized: energy in J, time in s, or a weighted sum of both relative to the default."""

    def __init__(self, objective: Union[str, Mapping]) -> None:
        weights = {objective: 1.0} if isinstance(objective, str) else dict(objective)
        is_valid = weights and set(weights) <= {"energy", "time"} and all(weight >= 0 for weight in weights.values())
        if not is_valid or sum(weights.values()) <= 0:
            raise ValueError(f'objective must be "energy", "time" or {{"energy": 0.5, "time": 0.5}}, not {objective!r}')
        total = sum(weights.values())
        self.weights = {name: weight / total for name, weight in weights.items() if weight > 0}
        self.default: Optional[Energy] = None  # what the default cost, for mixtures

    @property
    def unit(self) -> str:
        return {"energy": "J", "time": "s"}[next(iter(self.weights))] if len(self.weights) == 1 else "times the default"

    @property
    def needs_energy(self) -> bool:
        return "energy" in self.weights

    def cost(self, energy: Energy) -> Optional[float]:
        """None if the energy or the time is unknown."""
        values = {"energy": energy.joules, "time": energy.seconds}
        if any(values[name] is None for name in self.weights):
            return None
        if len(self.weights) == 1:
            return values[next(iter(self.weights))]
        if self.default is None:
            return None
        units = {"energy": self.default.joules, "time": self.default.seconds}
        if not all(units[name] for name in self.weights):
            return None
        return sum(weight * values[name] / units[name] for name, weight in self.weights.items())  # type: ignore[operator]


class Trial:
    """One run of `train`. Call report() after each evaluation, and return from `train` when it returns True."""

    def __init__(self, number: int, config: dict, target_metrics: TargetMetrics, objective: CostObjective,
                 limit: Optional[float], spent: Callable[[], str], prune: bool,
                 provenance: Optional[str]) -> None:  # fmt: skip
        self.number = number  # 0 is the default configuration
        self.config = config  # the configuration: the value of each factor
        self.stopped = False  # report() has returned True
        self.state = "running"  # then "reached", "missed", "ended", "stopped", "diverged" or "failed"
        self.reason = ""  # why it stopped, in words
        self.metrics: dict = {}  # of the last report
        self.reports = 0  # number of evaluations so far
        self.forecast: Optional[TargetCost] = None  # cost at which it would reach the target
        self._target_metrics, self._objective, self._cost_limit, self._can_prune = (
            target_metrics,
            objective,
            limit,
            prune,
        )
        self._budget_end_reason = spent
        self._provenance = provenance  # of the energies that its own is compared with; None if there is none
        self._report_costs: list = []
        self._report_losses: list = []
        self._agreeing_reports = 0
        self._window: Measurement = begin("trial")

    def report(self, epoch: int, value: Any = None, **metrics: Any) -> bool:
        """Adds the metrics of an evaluation: report(3, 0.87) with one goal, or report(3, accuracy=0.87, loss=0.4).
        Returns True if the training should end: the target is reached, or going on does not pay."""
        if self.stopped:
            return True
        self._record_metrics(value, metrics)
        if self.stopped:
            return True
        if over := self._budget_end_reason():
            self._stop_trial("stopped", over)
        else:
            self._check_pruning()
        return self.stopped

    def _record_metrics(self, value: Any, metrics: Mapping) -> None:
        """Ends the trial if the metrics reach the target or are not finite."""
        self.metrics = self._target_metrics.collect_metrics(value, metrics)
        self.reports += 1
        if self._target_metrics.has_reached_targets(self.metrics):
            self._stop_trial("reached", f"the target is reached after {self.reports} reports")
        elif not all(map(math.isfinite, self.metrics.values())):
            self._stop_trial("diverged", "a metric is not finite")

    def _check_pruning(self) -> None:
        """Stops the trial if it can no longer become the best one, or if its curve says so."""
        energy = self._window.peek()
        cost = self._objective.cost(energy)
        has_other_provenance = self._provenance is not None and energy.provenance != self._provenance
        if cost is None or (has_other_provenance and self._objective.needs_energy):
            return
        self._report_costs.append(max(cost, self._report_costs[-1] if self._report_costs else 0.0))
        self._report_losses.append(self.metrics)
        if self._target_metrics.limits:
            self.forecast = self._target_metrics.forecast_target_cost(self._report_costs, self._report_losses)
        if self._cost_limit is None or not self._can_prune:
            return
        unit, best = (
            self._objective.unit,
            f"{_format_number(self._cost_limit)} {self._objective.unit} of the best trial",
        )
        steps = [one - other for one, other in zip(self._report_costs, [0.0, *self._report_costs])]
        if cost + (min(steps) if self._target_metrics.limits else 0) > self._cost_limit:
            self._stop_trial("stopped", f"the target is not reached within the {best}")
            return
        low = None if self.forecast is None else self.forecast.low
        self._agreeing_reports = self._agreeing_reports + 1 if low is not None and low > self._cost_limit else 0
        if self._agreeing_reports >= TARGET_CONFIRMATIONS:
            needed = "never" if low == math.inf else f"after at least {_format_number(low)} {unit}, above the {best}"
            self._stop_trial("stopped", f"the target is expected {needed}")

    def _stop_trial(self, state: str, reason: str) -> None:
        self.stopped, self.state, self.reason = True, state, reason
        self._window.end()

    def _finish_trial(self, result: Any) -> TrialRow:
        """Ends the trial after `train` has returned, with the metrics that it returned. The result of report() is no
        metric, nor is a number without a target, which would name it."""
        if isinstance(result, Mapping):
            value, metrics = None, result
        else:
            value, metrics = None if _is_boolean(result) or not self._target_metrics.limits else result, {}
        if not self.stopped and (value is not None or metrics):
            self._record_metrics(value, metrics)
        if not self.stopped:
            missed = bool(self._target_metrics.limits)
            self._stop_trial("missed" if missed else "ended", "it ended before the target" if missed else "")
        return self._make_row()

    def _fail_trial(self, error: BaseException) -> TrialRow:
        message = f"{type(error).__name__}: {error}".split("\n", 1)[0][:200]
        if self.stopped:
            self.reason += f"; then {message}"
        else:
            self._stop_trial("failed", message)
        return self._make_row()

    def _make_row(self) -> TrialRow:
        energy = self._window.wait()
        cost = self._objective.cost(energy)
        return TrialRow(
            self.number, self.config, self.state, cost, energy.joules, energy.uncertainty_j, energy.seconds,
            energy.provenance, dict(self.metrics), self.reports, self.reason, None if self.forecast is None else
            self.forecast.value,
        )  # fmt: skip


class _ConfigSearch:
    """One call of tune(): chooses the next configuration, runs it, and decides when to stop."""

    def __init__(self, optuna: Any, train: Callable, space: ConfigSpace, objective: CostObjective,
                 target_metrics: TargetMetrics, default: dict, runs: int, seed: int, limits: dict, prune: bool, sampler: Any,
                 catch: tuple) -> None:  # fmt: skip
        self._optuna, self._train_function, self._config_space, self._objective, self._target_metrics = (
            optuna,
            train,
            space,
            objective,
            target_metrics,
        )
        self._default_config, self._runs, self._seed, self._search_limits, self._can_prune = (
            default,
            runs,
            seed,
            limits,
            prune,
        )
        self._caught_errors, self._sampler = catch, sampler
        self.study = optuna.create_study(sampler=sampler or optuna.samplers.RandomSampler(seed=seed))
        self._sampler_is_exhausted = False
        self.study.stop = (
            self._mark_sampler_exhausted
        )  # samplers of finite grids call it; outside of optimize() it would raise
        self._distributions = space.to_optuna_distributions()
        self.rows: list = []
        self.notes: list = []
        self.reason = ""
        self._stopped_cost_shares: list = []  # what stopped trials spent, relative to the best cost then
        self._model: Optional[tuple] = None  # (number of trials, CostModel)
        self.window: Measurement = begin("tune")

    def run(self, settings: MachineSettings, on_trial: Optional[Callable]) -> None:
        config: Optional[dict] = self._default_config
        trial = self._enqueue_config(self._default_config)
        while config is not None:
            settings.apply({name: config[name] for name in config if name in SETTING_NAMES})
            row = self._run_trial(config, trial)
            self.rows.append(row)
            self._store_trial(trial, row)
            if on_trial is not None:
                on_trial(row)
            trial, config = self._choose_next_config() if self._can_continue_search(row) else (None, None)

    def _run_trial(self, config: dict, trial: Any) -> TrialRow:
        best = self.best_cost()
        provenance = self.rows[0].provenance if self.rows else None
        running = Trial(
            len(self.rows),
            config,
            self._target_metrics,
            self._objective,
            best,
            self._budget_end_reason,
            self._can_prune,
            provenance,
        )
        try:
            row = running._finish_trial(self._train_function(dict(config), running))
        except Exception as error:
            if not (isinstance(error, self._caught_errors) or _is_out_of_memory(error)):
                raise
            row = running._fail_trial(error)
        for step, metrics in enumerate(running._report_losses):
            if self._target_metrics.limits:
                trial.report(metrics[next(iter(self._target_metrics.limits))], step)
        if not self.rows:
            self._set_objective(row)
            row = row.with_cost(self._objective.cost(row.energy))
        elif row.state == "stopped" and best and row.cost is not None:
            self._stopped_cost_shares.append(min(1.0, row.cost / best))
        return row

    def _set_objective(self, row: TrialRow) -> None:
        """Mixtures are relative to the default. Without its energy, time is tuned."""
        if row.energy_j is None and self._objective.needs_energy:
            reason = self.window.peek().reason
            self.notes.append(f"the energy is unknown ({reason}): time is tuned instead")
            self._objective.weights = {"time": 1.0}
        self._objective.default = row.energy
        if not row.is_complete:
            self.notes.append("the default configuration did not reach the target: there is no saving to compare with")
            if len(self._objective.weights) > 1:
                self.notes.append("costs are relative to what the default spent before it ended")

    def _budget_end_reason(self) -> str:
        """Why the search must end now; empty if it need not."""
        energy = self.window.peek()
        for name, unit, value in (("budget_j", "J", energy.joules), ("budget_s", "s", energy.seconds)):
            limit = self._search_limits[name]
            if limit is not None and value is not None and value >= limit:
                return f"the budget of {_format_number(limit)} {unit} is spent"
        return ""

    def _can_continue_search(self, row: TrialRow) -> bool:
        first = self.rows[0]
        if over := self._budget_end_reason():
            self.reason = over
        elif self._search_limits["budget_j"] is not None and row.energy_j is None:
            self.reason = "budget_j cannot be kept without the energy: use budget_s"
        elif len(self.rows) >= self._search_limits["max_trials"]:
            self.reason = f"{len(self.rows)} trials were allowed"
        elif self._objective.needs_energy and row.provenance != first.provenance:
            self.reason = "a part of the energy is measured and a part estimated or unknown: they are not compared"
        elif self.best_row() is None and len(self.rows) >= MAX_TRIALS_WITHOUT_TARGET:
            self.reason = f"none of {len(self.rows)} configurations reached the target"
        elif first.cost is None or (first.is_complete and first.cost <= 0):
            self.reason = "the default cost nothing that can be measured: the training is too short"
        return not self.reason

    def _choose_next_config(self) -> tuple:
        """The next configuration, and its trial in the study; (None, None) if a further one does not pay."""
        tried = {_config_key(row.config) for row in self.rows}
        source = random.Random(self._seed * 1_000_003 + len(self.rows))
        best_row = self.best_row()
        listed = self._config_space.list_candidates(
            source, self._default_config if best_row is None else best_row.config
        )
        untried_configs = [config for config in listed if _config_key(config) not in tried]
        if not untried_configs:
            self.reason = f"all {len(tried)} configurations were tried"
            return None, None
        model = self.model()
        best = self.best_relative_cost(model)
        points = [self._config_space.encode(config) for config in untried_configs]
        gains = model.expected_gains(points, 1.0 if best is None else best)
        savings_and_costs = [self._expected_saving_and_cost(gain, 1.0 if best is None else best) for gain in gains]
        index = max(
            range(len(savings_and_costs)),
            key=lambda number: savings_and_costs[number][0] / savings_and_costs[number][1],
        )
        saved, spent = savings_and_costs[index]
        if best is not None and saved < spent:
            self.reason = (
                f"further search does not pay: the next trial would cost about {self._format_cost(spent)} and save "
                f"about {self._format_cost(saved)} in {self._runs} later runs"
            )
            return None, None
        if self._sampler is not None:
            if trial := self._ask_sampler(tried):
                return trial, self._config_space.validate_config(trial.params)
            if self._sampler_is_exhausted:
                self.reason = "the sampler has no further configuration"
                return None, None
        return self._enqueue_config(untried_configs[index]), untried_configs[index]

    def _expected_saving_and_cost(self, gain: TrialGain, best: float) -> tuple:
        """(saving in all later runs, cost of the trial), relative to the default."""
        share = (PRIOR_STOPPED_TRIALS + sum(self._stopped_cost_shares)) / (
            PRIOR_STOPPED_TRIALS + len(self._stopped_cost_shares)
        )
        return self._runs * gain.saving, max(gain.target_cost + gain.pruning_probability * best * share, 1e-9)

    def _ask_sampler(self, tried: set) -> Any:
        """The next trial of the user's sampler whose configuration was not tried; None if it finds none."""
        for _ in range(SAMPLER_ATTEMPTS):
            if self._sampler_is_exhausted:
                break
            trial = self.study.ask(self._distributions)
            if _config_key(self._config_space.validate_config(trial.params)) not in tried:
                return trial
            self._report_to_study(trial, state=self._optuna.trial.TrialState.FAIL)
        return None

    def _mark_sampler_exhausted(self) -> None:
        self._sampler_is_exhausted = True

    def _report_to_study(self, trial: Any, value: Optional[float] = None, state: Any = None) -> None:
        try:
            self.study.tell(trial, value, state=state)
        except KeyError:  # GridSampler fails on a trial that it did not choose, after the study has stored it
            if not trial.study.trials[trial.number].state.is_finished():
                raise

    def _enqueue_config(self, config: dict) -> Any:
        self.study.enqueue_trial(config)
        return self.study.ask(self._distributions)

    def _store_trial(self, trial: Any, row: TrialRow) -> None:
        states = self._optuna.trial.TrialState
        trial.set_user_attr("state", row.state)
        trial.set_user_attr("energy_j", row.energy_j)
        trial.set_user_attr("time_s", row.time_s)
        trial.set_user_attr("provenance", row.provenance)
        if self._is_comparable(row):
            self._report_to_study(trial, row.cost)
        else:
            self._report_to_study(trial, state=states.PRUNED if row.state == "stopped" and row.reports else states.FAIL)

    def _is_comparable(self, row: TrialRow) -> bool:
        """Its cost is that of a later run, and can be compared with those of the other trials."""
        has_comparable_provenance = (
            not self._objective.needs_energy or row.provenance == (self.rows or [row])[0].provenance
        )
        return row.is_complete and bool(row.cost) and has_comparable_provenance

    def compute_model_cost_unit(self) -> float:
        """The unit of the model: the cost of the default or, if it did not reach the target, of the first trial that
        did. What a failed trial spent is no scale."""
        first = next((row for row in self.rows if self._is_comparable(row)), None)
        return 1.0 if first is None or first.cost is None else first.cost

    def model(self) -> CostModel:
        if self._model is None or self._model[0] != len(self.rows):
            scale = self.compute_model_cost_unit()
            made = [self._make_observation(row, scale) for row in self.rows]
            observations = [one for one in made if one is not None]
            self._model = len(self.rows), CostModel(observations, self._config_space.factor_of_coordinate, self._seed)
        return self._model[1]

    def _make_observation(self, row: TrialRow, scale: float) -> Optional[CostObservation]:
        """What a trial contributes to the model; None if its cost cannot be compared."""
        point = self._config_space.encode(row.config)
        if self._is_comparable(row) and row.cost is not None:
            return CostObservation(point, math.log(row.cost / scale), 0.0)
        if row.state != "stopped":
            return None if row.is_complete else CostObservation(point, math.log(MISSED_TARGET_FACTOR), FORECAST_LOG_STD)
        if not row.cost or (self._objective.needs_energy and row.provenance != self.rows[0].provenance):
            return None
        cost = row.cost * UNKNOWN_FORECAST_COST_FACTOR if row.forecast is None else max(row.forecast, row.cost)
        return CostObservation(point, math.log(min(max(cost / scale, 1e-6), MISSED_TARGET_FACTOR)), FORECAST_LOG_STD)

    def best_row(self) -> Optional[TrialRow]:
        """The complete trial with the least cost."""
        return min(filter(self._is_comparable, self.rows), key=lambda row: row.cost, default=None)

    def best_relative_cost(self, model: CostModel) -> Optional[float]:
        """The expected cost of the best configuration: a single run can be cheap by chance."""
        row = self.best_row()
        return None if row is None else float(model.expected_costs([self._config_space.encode(row.config)])[0])

    def best_cost(self) -> Optional[float]:
        """The cost at which a trial can no longer be the best one."""
        relative = None if self.best_row() is None else self.best_relative_cost(self.model())
        return None if relative is None else relative * self.compute_model_cost_unit()

    def _format_cost(self, relative: float) -> str:
        return f"{_format_number(relative * self.compute_model_cost_unit())} {self._objective.unit}"

    def result(self) -> TuneResult:
        self.window.end()
        energy = self.window.wait()
        del self.study.stop  # that of Optuna again
        best, default = self.best_row(), self.rows[0]
        outcome = SearchOutcome() if best is None else self._search_outcome(best, default, energy)
        self.notes += [f"trial {row.number} cost nothing that can be measured: it is not compared"
                       for row in self.rows if row.is_complete and row.cost == 0]  # fmt: skip
        if not self._target_metrics.limits:
            self.notes.append("without at_least or at_most, the cheapest run is the best one, whatever it has learned")
        if energy.provenance == "estimated":
            self.notes.append("energies are estimated, not measured")
        if energy.joules is None and not any("unknown" in note for note in self.notes):
            self.notes.append(f"the energy is unknown ({energy.reason})")
        return TuneResult(
            best,
            default,
            self.rows,
            outcome,
            energy,
            self._runs,
            self._objective.unit,
            self.reason,
            self.notes,
            self.study,
        )

    def _search_outcome(self, best: TrialRow, default: TrialRow, energy: Energy) -> SearchOutcome:
        """Costs of the best and the default configuration in later runs, and the saving: expected values and 90 %
        intervals."""
        points = [self._config_space.encode(default.config), self._config_space.encode(best.config)]
        drawn = self.model().sample_costs(points, INTERVAL_DRAWS, self._seed) * self.compute_model_cost_unit()
        costs = _mean_and_interval([float(value) for value in drawn[:, 1]])
        has_comparable_provenance = not self._objective.needs_energy or energy.provenance == best.provenance
        search = self._objective.cost(energy) if has_comparable_provenance else None
        if not default.is_complete or search is None:
            return SearchOutcome(costs, None, search)
        if best is default:
            return SearchOutcome(costs, (-search, -search, -search), search)
        savings = [self._runs * float(one - other) - search for one, other in drawn]
        return SearchOutcome(costs, _mean_and_interval(savings), search)


def _mean_and_interval(values: list) -> tuple:
    """(mean, 5th percentile, 95th percentile)."""
    ordered = sorted(values)
    return statistics.fmean(ordered), ordered[len(ordered) // 20], ordered[-1 - len(ordered) // 20]


def _config_key(config: Mapping) -> tuple:
    return tuple(sorted((name, repr(value)) for name, value in config.items()))


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # of NumPy, too


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__


def _import_optuna() -> Any:
    try:
        return importlib.import_module("optuna")
    except ImportError as error:
        raise JoulemapError("jm.tune needs Optuna: pip install 'joulemap[tune]'") from error


def _validate_setting(settings: MachineSettings, name: str, values: Any) -> None:
    """Raises JoulemapError if the machine does not offer one of the values, before the first trial spends energy."""
    for value in (values.low, values.high) if isinstance(values, Range) else values:
        try:
            settings._list_path_values(name, value)
        except OSError as error:
            raise JoulemapError(f"{name}={value!r} cannot be checked ({error}): remove the factor") from error


@contextlib.contextmanager
def _silence_optuna_log(optuna: Any) -> Iterator[None]:
    """Optuna logs each trial; its level is restored afterwards."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)


def tune(
    train: Callable[[dict, Trial], Any],
    space: Mapping,
    *,
    objective: Union[str, Mapping] = "energy",
    at_least: Optional[Mapping] = None,
    at_most: Optional[Mapping] = None,
    default: Optional[Mapping] = None,
    runs_planned: int = 10,
    budget_j: Optional[float] = None,
    budget_s: Optional[float] = None,
    max_trials: int = MAX_TRIALS,
    prune: bool = True,
    seed: int = 0,
    sampler: Any = None,
    catch: tuple = (),
    set_machine: bool = False,
    on_trial: Optional[Callable[[TrialRow], None]] = None,
) -> TuneResult:
    """Searches for the configuration with which `train` reaches its target for the least energy. The search counts its
    own energy: it stops when a further trial is expected to cost more than it saves in `runs_planned` later runs.

        def train(config, trial):
            model = make_model(lr=config["lr"])
            for epoch in range(50):
                train_epoch(model, config["batch_size"])
                if trial.report(epoch, accuracy=evaluate(model)):
                    break

        result = jm.tune(train, {"batch_size": [32, 64, 128], "lr": jm.log_uniform(1e-4, 1e-1)},
                         at_least={"accuracy": 0.9}, runs_planned=20)
        print(result)
        result.best                          # {"batch_size": 64, "lr": 0.0031}

    Needs Optuna: pip install 'joulemap[tune]'. The same seed and the same measured values give the same search.

    - `train`: runs one training; reports metrics to the Trial, and returns when report() returns True
    - `space`: factors, with a list of values or jm.uniform(), jm.log_uniform(), jm.integers()
    - `objective`: "energy", "time", or weights of both, relative to the default: {"energy": 0.7, "time": 0.3}. If the
      energy is unknown, time is tuned and `notes` of the result says so
    - `at_least`, `at_most`: metrics of the target. A configuration costs what a run uses until a report reaches it
    - `default`: configuration to compare with, which runs first; by default the first value of each list and the midpoint
      of each range
    - `runs_planned`: number of later runs with the best configuration
    - `budget_j`, `budget_s`, `max_trials`: limits of the search; a running trial ends at its next report
    - `prune`: stop trials that have become more expensive than the best one, or whose curve will. Switch it off if metrics
      improve suddenly, for example after a change of the learning rate
    - `sampler`: a sampler of Optuna that chooses configurations instead
    - `catch`: exceptions of `train` that end a trial instead of the search; running out of memory always does
    - `set_machine`: permits the factors gpu_power_limit_w, gpu_clock_mhz, cpu_power_limit_w, cpu_max_mhz and
      cpu_governor, which change settings of the machine during the search. They are restored, also if it is killed
    - `on_trial`: called with each TrialRow
    """
    optuna = _import_optuna()
    factors = ConfigSpace(space)
    first = factors.validate_config(factors.first_config() if default is None else default)
    if not (isinstance(runs_planned, int) and runs_planned >= 0):
        raise ValueError(f"runs_planned must be an integer from 0 on, not {runs_planned!r}")
    changed = [name for name in factors.factors if name in SETTING_NAMES]
    if changed and not set_machine:
        raise ValueError(f"{changed[0]} changes a setting of the machine: permit it with set_machine=True")
    limits = {"budget_j": budget_j, "budget_s": budget_s, "max_trials": max_trials}
    with _silence_optuna_log(optuna), contextlib.ExitStack() as stack:
        settings = stack.enter_context(MachineSettings()) if changed else MachineSettings()
        for name in changed:
            _validate_setting(settings, name, factors.factors[name])
        search = _ConfigSearch(optuna, train, factors, CostObjective(objective), TargetMetrics(at_least, at_most), first,
                         runs_planned, seed, limits, prune, sampler, tuple(catch))  # fmt: skip
        search.run(settings, on_trial)
        stack.close()  # restores settings before the energy of the search ends
        search.notes += settings.notes
        return search.result()
