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
        for name, limits in (("at_least", at_least), ("at_most", at_most)):
            if limits is not None and not isinstance(limits, Mapping):
                raise TypeError(f'{name} must name the metrics, as {{"accuracy": 0.9}}, not {limits!r}')
        # name -> (sign, limit): sign x metric must be at most sign x limit
        self.limits = {name: (-1.0, float(limit)) for name, limit in (at_least or {}).items()}
        for name, limit in (at_most or {}).items():
            if name in self.limits:
                raise ValueError(f"{name} is in at_least and at_most")
            self.limits[name] = (1.0, float(limit))

    def collect_metrics(self, value: Any, metrics: Mapping) -> dict:
        """The metrics of a report as numbers; `value` is the metric of the only goal."""
        named_metrics = dict(metrics)
        if value is not None:
            if len(self.limits) != 1:
                raise TypeError("name the metrics: trial.report(epoch, accuracy=0.9)")
            named_metrics[next(iter(self.limits))] = value
        if boolean_metric := next((name for name, metric in named_metrics.items() if _is_boolean(metric)), None):
            raise TypeError(f"{boolean_metric} must be a number, not {named_metrics[boolean_metric]!r}")
        named_metrics = {name: float(metric) for name, metric in named_metrics.items()}
        missing_metrics = [name for name in self.limits if name not in named_metrics]
        if missing_metrics:
            raise ValueError(f"the report lacks {', '.join(missing_metrics)}, which at_least or at_most names")
        return named_metrics

    def has_reached_targets(self, metrics: Mapping) -> bool:
        return bool(self.limits) and all(
            sign * metrics[name] <= sign * limit for name, (sign, limit) in self.limits.items()
        )

    def forecast_target_cost(self, costs: list, history: list) -> Optional[TargetCost]:
        """The cost at which the last goal is reached. None if a curve is not determined."""
        target_costs = []
        for name, (sign, limit) in self.limits.items():
            loss_points = [LossPoint(cost, sign * metrics[name]) for cost, metrics in zip(costs, history)]
            if loss_points[-1].loss <= sign * limit:
                continue  # this goal is reached
            target_cost = cost_to_target(loss_points, sign * limit)
            if target_cost is None:
                return None
            target_costs.append(target_cost)
        return (
            TargetCost(
                max(forecast_cost.value for forecast_cost in target_costs),
                max(forecast_cost.low for forecast_cost in target_costs),
            )
            if target_costs
            else None
        )


class CostObjective:
    """The cost that is minimized: energy in J, time in s, or a weighted sum of both relative to the default."""

    def __init__(self, objective: Union[str, Mapping]) -> None:
        weights = {objective: 1.0} if isinstance(objective, str) else dict(objective)
        is_valid = weights and set(weights) <= {"energy", "time"} and all(weight >= 0 for weight in weights.values())
        if not is_valid or sum(weights.values()) <= 0:
            raise ValueError(f'objective must be "energy", "time" or {{"energy": 0.5, "time": 0.5}}, not {objective!r}')
        total_weight = sum(weights.values())
        self.weights = {name: weight / total_weight for name, weight in weights.items() if weight > 0}
        self.default: Optional[Energy] = None  # what the default cost, for mixtures

    @property
    def unit(self) -> str:
        return {"energy": "J", "time": "s"}[next(iter(self.weights))] if len(self.weights) == 1 else "times the default"

    @property
    def needs_energy(self) -> bool:
        return "energy" in self.weights

    def cost(self, energy: Energy) -> Optional[float]:
        """None if the energy or the time is unknown."""
        measured_by_name = {"energy": energy.joules, "time": energy.seconds}
        if any(measured_by_name[name] is None for name in self.weights):
            return None
        if len(self.weights) == 1:
            return measured_by_name[next(iter(self.weights))]
        if self.default is None:
            return None
        default_by_name = {"energy": self.default.joules, "time": self.default.seconds}
        if not all(default_by_name[name] for name in self.weights):
            return None
        return sum(
            weight * measured_by_name[name] / default_by_name[name]  # type: ignore[operator]
            for name, weight in self.weights.items()
        )


class Trial:
    """One run of `train`. Call report() after each evaluation, and return from `train` when it returns True."""

    def __init__(self, number: int, config: dict, target_metrics: TargetMetrics, objective: CostObjective,
                 cost_limit: Optional[float], budget_end_reason: Callable[[], str], can_prune: bool,
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
            cost_limit,
            can_prune,
        )
        self._budget_end_reason = budget_end_reason
        self._provenance = provenance  # of the energies that its own is compared with; None if there is none
        self._report_costs: list = []
        self._report_losses: list = []
        self._agreeing_reports = 0
        self._trial_window: Measurement = begin("trial")

    def report(self, epoch: int, value: Any = None, **metrics: Any) -> bool:
        """Adds the metrics of an evaluation: report(3, 0.87) with one goal, or report(3, accuracy=0.87, loss=0.4).
        Returns True if the training should end: the target is reached, or going on does not pay."""
        if self.stopped:
            return True
        self._record_metrics(value, metrics)
        if self.stopped:
            return True
        if end_reason := self._budget_end_reason():
            self._stop_trial("stopped", end_reason)
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
        energy = self._trial_window.peek()
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
        unit, best_text = (
            self._objective.unit,
            f"{_format_number(self._cost_limit)} {self._objective.unit} of the best trial",
        )
        cost_steps = [
            cost_after - cost_before for cost_after, cost_before in zip(self._report_costs, [0.0, *self._report_costs])
        ]
        if cost + (min(cost_steps) if self._target_metrics.limits else 0) > self._cost_limit:
            self._stop_trial("stopped", f"the target is not reached within the {best_text}")
            return
        forecast_low = None if self.forecast is None else self.forecast.low
        self._agreeing_reports = (
            self._agreeing_reports + 1 if forecast_low is not None and forecast_low > self._cost_limit else 0
        )
        if self._agreeing_reports >= TARGET_CONFIRMATIONS:
            needed_text = (
                "never"
                if forecast_low == math.inf
                else f"after at least {_format_number(forecast_low)} {unit}, above the {best_text}"
            )
            self._stop_trial("stopped", f"the target is expected {needed_text}")

    def _stop_trial(self, state: str, reason: str) -> None:
        self.stopped, self.state, self.reason = True, state, reason
        self._trial_window.end()

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
            has_missed_target = bool(self._target_metrics.limits)
            self._stop_trial(
                "missed" if has_missed_target else "ended", "it ended before the target" if has_missed_target else ""
            )
        return self._make_row()

    def _fail_trial(self, error: BaseException) -> TrialRow:
        message = f"{type(error).__name__}: {error}".split("\n", 1)[0][:200]
        if self.stopped:
            self.reason += f"; then {message}"
        else:
            self._stop_trial("failed", message)
        return self._make_row()

    def _make_row(self) -> TrialRow:
        energy = self._trial_window.wait()
        cost = self._objective.cost(energy)
        return TrialRow(
            self.number, self.config, self.state, cost, energy.joules, energy.uncertainty_j, energy.seconds,
            energy.provenance, dict(self.metrics), self.reports, self.reason, None if self.forecast is None else
            self.forecast.value,
        )  # fmt: skip


class _ConfigSearch:
    """One call of tune(): chooses the next configuration, runs it, and decides when to stop."""

    def __init__(self, optuna: Any, train_function: Callable, config_space: ConfigSpace, objective: CostObjective,
                 target_metrics: TargetMetrics, default_config: dict, runs: int, seed: int, search_limits: dict,
                 can_prune: bool, sampler: Any, caught_errors: tuple) -> None:  # fmt: skip
        self._optuna, self._train_function, self._config_space, self._objective, self._target_metrics = (
            optuna,
            train_function,
            config_space,
            objective,
            target_metrics,
        )
        self._default_config, self._runs_planned, self._seed, self._search_limits, self._can_prune = (
            default_config,
            runs,
            seed,
            search_limits,
            can_prune,
        )
        self._caught_errors, self._sampler = caught_errors, sampler
        self.study = optuna.create_study(sampler=sampler or optuna.samplers.RandomSampler(seed=seed))
        self._sampler_is_exhausted = False
        self.study.stop = (
            self._mark_sampler_exhausted
        )  # samplers of finite grids call it; outside of optimize() it would raise
        self._optuna_distributions = config_space.to_optuna_distributions()
        self.rows: list = []
        self.notes: list = []
        self.reason = ""
        self._stopped_cost_shares: list = []  # what stopped trials spent, relative to the best cost then
        self._counted_cost_model: Optional[tuple] = None  # (number of trials, CostModel)
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
        best_cost = self.best_cost()
        provenance = self.rows[0].provenance if self.rows else None
        running_trial = Trial(
            len(self.rows),
            config,
            self._target_metrics,
            self._objective,
            best_cost,
            self._budget_end_reason,
            self._can_prune,
            provenance,
        )
        try:
            row = running_trial._finish_trial(self._train_function(dict(config), running_trial))
        except Exception as error:
            if not (isinstance(error, self._caught_errors) or _is_out_of_memory(error)):
                raise
            row = running_trial._fail_trial(error)
        for report_index, metrics in enumerate(running_trial._report_losses):
            if self._target_metrics.limits:
                trial.report(metrics[next(iter(self._target_metrics.limits))], report_index)
        if not self.rows:
            self._set_objective(row)
            row = row.with_cost(self._objective.cost(row.energy))
        elif row.state == "stopped" and best_cost and row.cost is not None:
            self._stopped_cost_shares.append(min(1.0, row.cost / best_cost))
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
        default_row = self.rows[0]
        if end_reason := self._budget_end_reason():
            self.reason = end_reason
        elif self._search_limits["budget_j"] is not None and row.energy_j is None:
            self.reason = "budget_j cannot be kept without the energy: use budget_s"
        elif len(self.rows) >= self._search_limits["max_trials"]:
            self.reason = f"{len(self.rows)} trials were allowed"
        elif self._objective.needs_energy and row.provenance != default_row.provenance:
            self.reason = "a part of the energy is measured and a part estimated or unknown: they are not compared"
        elif self.best_row() is None and len(self.rows) >= MAX_TRIALS_WITHOUT_TARGET:
            self.reason = f"none of {len(self.rows)} configurations reached the target"
        elif default_row.cost is None or (default_row.is_complete and default_row.cost <= 0):
            self.reason = "the default cost nothing that can be measured: the training is too short"
        return not self.reason

    def _choose_next_config(self) -> tuple:
        """The next configuration, and its trial in the study; (None, None) if a further one does not pay."""
        tried_keys = {_config_key(row.config) for row in self.rows}
        random_generator = random.Random(self._seed * 1_000_003 + len(self.rows))
        best_row = self.best_row()
        candidates = self._config_space.list_candidates(
            random_generator, self._default_config if best_row is None else best_row.config
        )
        untried_configs = [config for config in candidates if _config_key(config) not in tried_keys]
        if not untried_configs:
            self.reason = f"all {len(tried_keys)} configurations were tried"
            return None, None
        model = self.model()
        best_cost = self.best_relative_cost(model)
        candidate_points = [self._config_space.encode(config) for config in untried_configs]
        gains = model.expected_gains(candidate_points, 1.0 if best_cost is None else best_cost)
        savings_and_costs = [
            self._expected_saving_and_cost(trial_gain, 1.0 if best_cost is None else best_cost) for trial_gain in gains
        ]
        best_index = max(
            range(len(savings_and_costs)),
            key=lambda candidate_index: savings_and_costs[candidate_index][0] / savings_and_costs[candidate_index][1],
        )
        saving, trial_cost = savings_and_costs[best_index]
        if best_cost is not None and saving < trial_cost:
            self.reason = (
                f"further search does not pay: the next trial would cost about {self._format_cost(trial_cost)} "
                f"and save about {self._format_cost(saving)} in {self._runs_planned} later runs"
            )
            return None, None
        if self._sampler is not None:
            if trial := self._ask_sampler(tried_keys):
                return trial, self._config_space.validate_config(trial.params)
            if self._sampler_is_exhausted:
                self.reason = "the sampler has no further configuration"
                return None, None
        return self._enqueue_config(untried_configs[best_index]), untried_configs[best_index]

    def _expected_saving_and_cost(self, trial_gain: TrialGain, best_cost: float) -> tuple:
        """(saving in all later runs, cost of the trial), relative to the default."""
        stopped_share = (PRIOR_STOPPED_TRIALS + sum(self._stopped_cost_shares)) / (
            PRIOR_STOPPED_TRIALS + len(self._stopped_cost_shares)
        )
        return self._runs_planned * trial_gain.saving, max(
            trial_gain.target_cost + trial_gain.pruning_probability * best_cost * stopped_share, 1e-9
        )

    def _ask_sampler(self, tried_keys: set) -> Any:
        """The next trial of the user's sampler whose configuration was not tried; None if it finds none."""
        for _ in range(SAMPLER_ATTEMPTS):
            if self._sampler_is_exhausted:
                break
            trial = self.study.ask(self._optuna_distributions)
            if _config_key(self._config_space.validate_config(trial.params)) not in tried_keys:
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
        return self.study.ask(self._optuna_distributions)

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
        scale_row = next((row for row in self.rows if self._is_comparable(row)), None)
        return 1.0 if scale_row is None or scale_row.cost is None else scale_row.cost

    def model(self) -> CostModel:
        if self._counted_cost_model is None or self._counted_cost_model[0] != len(self.rows):
            cost_unit = self.compute_model_cost_unit()
            optional_observations = [self._make_observation(row, cost_unit) for row in self.rows]
            observations = [observation for observation in optional_observations if observation is not None]
            self._counted_cost_model = (
                len(self.rows),
                CostModel(observations, self._config_space.factor_of_coordinate, self._seed),
            )
        return self._counted_cost_model[1]

    def _make_observation(self, row: TrialRow, cost_unit: float) -> Optional[CostObservation]:
        """What a trial contributes to the model; None if its cost cannot be compared."""
        point = self._config_space.encode(row.config)
        if self._is_comparable(row) and row.cost is not None:
            return CostObservation(point, math.log(row.cost / cost_unit), 0.0)
        if row.state != "stopped":
            return None if row.is_complete else CostObservation(point, math.log(MISSED_TARGET_FACTOR), FORECAST_LOG_STD)
        if not row.cost or (self._objective.needs_energy and row.provenance != self.rows[0].provenance):
            return None
        cost = row.cost * UNKNOWN_FORECAST_COST_FACTOR if row.forecast is None else max(row.forecast, row.cost)
        return CostObservation(
            point, math.log(min(max(cost / cost_unit, 1e-6), MISSED_TARGET_FACTOR)), FORECAST_LOG_STD
        )

    def best_row(self) -> Optional[TrialRow]:
        """The complete trial with the least cost."""
        return min(filter(self._is_comparable, self.rows), key=lambda row: row.cost, default=None)

    def best_relative_cost(self, model: CostModel) -> Optional[float]:
        """The expected cost of the best configuration: a single run can be cheap by chance."""
        best_row = self.best_row()
        return (
            None if best_row is None else float(model.expected_costs([self._config_space.encode(best_row.config)])[0])
        )

    def best_cost(self) -> Optional[float]:
        """The cost at which a trial can no longer be the best one."""
        relative_cost = None if self.best_row() is None else self.best_relative_cost(self.model())
        return None if relative_cost is None else relative_cost * self.compute_model_cost_unit()

    def _format_cost(self, relative_cost: float) -> str:
        return f"{_format_number(relative_cost * self.compute_model_cost_unit())} {self._objective.unit}"

    def result(self) -> TuneResult:
        self.window.end()
        energy = self.window.wait()
        del self.study.stop  # that of Optuna again
        best_row, default_row = self.best_row(), self.rows[0]
        outcome = SearchOutcome() if best_row is None else self._search_outcome(best_row, default_row, energy)
        self.notes += [f"trial {row.number} cost nothing that can be measured: it is not compared"
                       for row in self.rows if row.is_complete and row.cost == 0]  # fmt: skip
        if not self._target_metrics.limits:
            self.notes.append("without at_least or at_most, the cheapest run is the best one, whatever it has learned")
        if energy.provenance == "estimated":
            self.notes.append("energies are estimated, not measured")
        if energy.joules is None and not any("unknown" in note for note in self.notes):
            self.notes.append(f"the energy is unknown ({energy.reason})")
        return TuneResult(
            best_row,
            default_row,
            self.rows,
            outcome,
            energy,
            self._runs_planned,
            self._objective.unit,
            self.reason,
            self.notes,
            self.study,
        )

    def _search_outcome(self, best_row: TrialRow, default_row: TrialRow, energy: Energy) -> SearchOutcome:
        """Costs of the best and the default configuration in later runs, and the saving: medians and 90 % intervals."""
        config_points = [self._config_space.encode(default_row.config), self._config_space.encode(best_row.config)]
        drawn_costs = (
            self.model().sample_costs(config_points, INTERVAL_DRAWS, self._seed) * self.compute_model_cost_unit()
        )
        best_cost = _median_and_interval(drawn_costs[:, 1].tolist())
        has_comparable_provenance = not self._objective.needs_energy or energy.provenance == best_row.provenance
        search_cost = self._objective.cost(energy) if has_comparable_provenance else None
        if not default_row.is_complete:
            return SearchOutcome(best_cost, None, search_cost)
        default_cost = statistics.median(drawn_costs[:, 1 if best_row is default_row else 0].tolist())
        if search_cost is None:
            return SearchOutcome(best_cost, None, None, default_cost)
        if best_row is default_row:
            return SearchOutcome(best_cost, (-search_cost,) * 3, search_cost, default_cost)
        savings_per_run = _median_and_interval((drawn_costs[:, 0] - drawn_costs[:, 1]).tolist())
        net_saving = tuple(self._runs_planned * saving - search_cost for saving in savings_per_run)
        return SearchOutcome(best_cost, net_saving, search_cost, default_cost, savings_per_run[0])


def _median_and_interval(values: list) -> tuple:
    """(median, 5th percentile, 95th percentile). After a few trials, the mean of the draws can lie outside of the interval:
    a few draws assume that runs vary by a large factor."""
    sorted_values = sorted(values)
    return (
        statistics.median(sorted_values),
        sorted_values[len(sorted_values) // 20],
        sorted_values[-1 - len(sorted_values) // 20],
    )


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


def _validate_setting(settings: MachineSettings, name: str, factor_values: Any) -> None:
    """Raises JoulemapError if the machine does not offer one of the values, before the first trial spends energy."""
    for value in (factor_values.low, factor_values.high) if isinstance(factor_values, Range) else factor_values:
        try:
            settings._list_path_values(name, value)
        except OSError as error:
            raise JoulemapError(f"{name}={value!r} cannot be checked ({error}): remove the factor") from error


@contextlib.contextmanager
def _silence_optuna_log(optuna: Any) -> Iterator[None]:
    """Optuna logs each trial; its level is restored afterwards."""
    previous_level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(previous_level)


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
    config_space = ConfigSpace(space)
    first_config = config_space.validate_config(config_space.first_config() if default is None else default)
    if not (isinstance(runs_planned, int) and runs_planned >= 0):
        raise ValueError(f"runs_planned must be an integer from 0 on, not {runs_planned!r}")
    machine_factors = [name for name in config_space.factors if name in SETTING_NAMES]
    if machine_factors and not set_machine:
        raise ValueError(f"{machine_factors[0]} changes a setting of the machine: permit it with set_machine=True")
    search_limits = {"budget_j": budget_j, "budget_s": budget_s, "max_trials": max_trials}
    with _silence_optuna_log(optuna), contextlib.ExitStack() as exit_stack:
        settings = exit_stack.enter_context(MachineSettings()) if machine_factors else MachineSettings()
        for name in machine_factors:
            _validate_setting(settings, name, config_space.factors[name])
        config_search = _ConfigSearch(optuna, train, config_space, CostObjective(objective),
                                      TargetMetrics(at_least, at_most), first_config, runs_planned, seed,
                                      search_limits, prune, sampler, tuple(catch))  # fmt: skip
        config_search.run(settings, on_trial)
        exit_stack.close()  # restores settings before the energy of the search ends
        config_search.notes += settings.notes
        return config_search.result()
