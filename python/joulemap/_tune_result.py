# SPDX-License-Identifier: Apache-2.0
"""The result of jm.tune as plain data, and its table."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Optional

from ._energy import Energy, _format_number, interval_bound
from ._ledger import import_optional


@dataclasses.dataclass(frozen=True)
class TrialRow:
    """One trial of jm.tune(). If it reached the target, cost, energy and time end there."""

    number: int  # 0 is the default configuration
    config: dict  # name of each factor -> value
    state: str  # "reached", "missed", "ended" (without a target), "stopped", "diverged" or "failed"
    cost: Optional[float]  # what is minimized; None if unknown
    energy_j: Optional[float]  # energy of the trial, in J; None if unknown
    uncertainty_j: Optional[float]  # half width of the 95 % interval of the energy, in J
    time_s: Optional[float]  # duration of the trial, in s
    provenance: Optional[str]  # "measured" or "estimated"; None without energy
    metrics: dict  # of the last report
    reports: int  # number of reports
    reason: str  # why it ended, in words
    forecast: Optional[float] = None  # of a trial that did not reach the target: cost at which it would

    @property
    def is_complete(self) -> bool:
        """Its cost is that of a later run with this configuration."""
        return self.state in ("reached", "ended")

    @property
    def energy(self) -> Energy:
        return Energy(self.energy_j, self.uncertainty_j, self.time_s, None, self.provenance, "")

    def with_cost(self, cost: Optional[float]) -> TrialRow:
        return dataclasses.replace(self, cost=cost)


@dataclasses.dataclass(frozen=True)
class SearchOutcome:
    """Estimates of the model, in the unit of the objective. Tuples are 90 % intervals: (median, low, high)."""

    best: Optional[tuple] = None  # cost of a later run with the best configuration
    saving: Optional[tuple] = None  # saving of all later runs minus the cost of the search
    search: Optional[float] = None  # cost of the search
    default: Optional[float] = None  # cost of a later run with the default configuration; None if it missed the target
    saving_per_run: Optional[float] = None  # of a later run with the best configuration, compared with the default


class TuneResult:
    """The result of tune(). Printing it shows the best configuration, what the search cost and saves, and all trials."""

    def __init__(self, best_trial: Optional[TrialRow], default: TrialRow, trials: list, outcome: SearchOutcome,
                 energy: Energy, runs: int, unit: str, reason: str, notes: list, study: Any) -> None:  # fmt: skip
        self.best: Optional[dict] = (
            None if best_trial is None else dict(best_trial.config)
        )  # None if no trial reached the target
        self.best_trial, self.default_trial = best_trial, default  # a TrialRow each
        self.trials: list = trials  # a list of TrialRow
        self.runs_planned = runs  # number of later runs that the saving is for
        self.unit = unit  # of the costs: "J", "s" or "times the default"
        self.reason = reason  # why the search stopped, in words
        self.notes: list = notes  # what limits the numbers
        self.search_energy = energy  # an Energy: of the whole search, including the choice of configurations
        self.cost, self.cost_low, self.cost_high = outcome.best or (None, None, None)  # of a later run, 90 % interval
        self.search_cost = outcome.search  # cost of the search
        # Saving of the later runs minus the cost of the search, compared with the default, 90 % interval.
        self.saving, self.saving_low, self.saving_high = outcome.saving or (None, None, None)
        self._default_cost, self._saving_per_run = outcome.default, outcome.saving_per_run
        self.study = study  # the study of Optuna, with all trials

    @property
    def provenance(self) -> Optional[str]:
        """Provenance of the energies: "measured", "estimated" or None."""
        return self.search_energy.provenance

    @property
    def energy_j(self) -> Optional[float]:
        """Energy of a later run with the best configuration until the target, in J: median of the estimate; None if
        unknown."""
        return self.cost if self.unit == "J" else None if self.best_trial is None else self.best_trial.energy_j

    @property
    def low_j(self) -> Optional[float]:
        """Lower bound of its 90 % interval, in J; with another objective, of the 95 % interval of the trial."""
        return self.cost_low if self.unit == "J" else self._energy_bound(-1)

    @property
    def high_j(self) -> Optional[float]:
        """Upper bound of its 90 % interval, in J; with another objective, of the 95 % interval of the trial."""
        return self.cost_high if self.unit == "J" else self._energy_bound(1)

    def _energy_bound(self, sign: int) -> Optional[float]:
        best_row = self.best_trial
        return None if best_row is None else interval_bound(best_row.energy_j, best_row.uncertainty_j, sign)

    @property
    def search_j(self) -> Optional[float]:
        """Energy of the whole search, in J; None if unknown."""
        return self.search_energy.joules

    @property
    def search_s(self) -> Optional[float]:
        """Duration of the whole search, in s."""
        return self.search_energy.seconds

    @property
    def saving_j(self) -> Optional[float]:
        """Energy that `runs_planned` later runs save compared with the default, minus that of the search, in J. Negative if
        the search does not pay; None if unknown."""
        if self.unit == "J":
            return self.saving
        if self.best_trial is None or not self.default_trial.is_complete:
            return None
        energies_j = [self.default_trial.energy_j, self.best_trial.energy_j, self.search_j]
        provenances = {self.default_trial.provenance, self.best_trial.provenance, self.provenance}
        if any(energy_j is None for energy_j in energies_j) or len(provenances) > 1:
            return None
        return self.runs_planned * (energies_j[0] - energies_j[1]) - energies_j[2]  # type: ignore[operator]

    @property
    def break_even_runs(self) -> Optional[float]:
        """Number of later runs after which the search has paid; None if it never does or is unknown."""
        if self.search_cost is None or self._saving_per_run is None or self._saving_per_run <= 0:
            return None
        return self.search_cost / self._saving_per_run

    def to_dicts(self) -> list:
        """The trials as flat dictionaries: factors, then metrics, then cost, energy and time."""
        return [
            {**_prefix_keys("", row.config), **_prefix_keys("metric_", row.metrics),
             **{name: getattr(row, name) for name in _TRIAL_COLUMNS}}
            for row in self.trials
        ]  # fmt: skip

    def to_pandas(self) -> Any:
        """A DataFrame with the same rows; needs pandas."""
        return import_optional("pandas").DataFrame(self.to_dicts())

    def __str__(self) -> str:
        return "\n".join([*self._summary_lines(), *self._table_lines(), *(f"note: {note}" for note in self.notes)])

    def _summary_lines(self) -> list:
        lines = [f"stopped: {self.reason}"]
        energy = self.search_energy
        energy_text = (
            "energy unknown" if energy.joules is None else f"{_format_number(energy.joules)} J ({energy.provenance})"
        )
        search_line = f"search: {len(self.trials)} trials, {energy_text} in {_format_number(energy.seconds)} s"
        if self.best is None:
            return ["no configuration reached the target", search_line, *lines]
        best_line = f"best: {_config_text(self.best)}"
        cost_text = (
            f"{_format_number(self.cost)} {self.unit}, 90 % interval {_interval_text(self.cost_low, self.cost_high)}"
        )
        if self._default_cost is not None:
            cost_text += f"; default {_format_number(self._default_cost)} {self.unit}"
        lines.insert(0, f"cost of a run: {cost_text}")
        if self.saving is not None:
            saving_interval = _interval_text(self.saving_low, self.saving_high)
            lines.insert(1, f"net saving over {self.runs_planned} later runs: {_format_number(self.saving)} {self.unit}, "
                            f"90 % interval {saving_interval}")  # fmt: skip
        return [best_line, search_line, *lines]

    def _table_lines(self) -> list:
        factors, metrics = (
            list(self.default_trial.config),
            sorted({name for row in self.trials for name in row.metrics}),
        )
        cost_columns = ["J", "s"] if self.unit in ("J", "s") else ["J", "s", "cost"]
        table_rows = [["trial", *factors, *metrics, *cost_columns, "reports", "result"]]
        for row in self.trials:
            costs = [row.energy_j, row.time_s, row.cost][: len(cost_columns)]
            best_mark = " (best)" if row is self.best_trial else ""
            table_rows.append([
                str(row.number), *(_value_text(row.config[name]) for name in factors),
                *(_value_text(row.metrics.get(name)) for name in metrics), *map(_format_number, costs),
                str(row.reports), row.state + best_mark,
            ])  # fmt: skip
        column_widths = [
            max(len(table_row[column_index]) for table_row in table_rows) for column_index in range(len(table_rows[0]))
        ]
        return [
            "  ".join(
                [
                    *(cell.rjust(column_width) for cell, column_width in zip(table_row[:-1], column_widths)),
                    table_row[-1],
                ]
            )
            for table_row in table_rows
        ]

    def __repr__(self) -> str:
        best_text = "none" if self.best is None else _config_text(self.best)
        return f"<TuneResult of {len(self.trials)} trials: {best_text}>"


_TRIAL_COLUMNS = ("state", "cost", "energy_j", "uncertainty_j", "time_s", "provenance", "reports", "reason", "forecast")


def _prefix_keys(prefix: str, values: Mapping) -> dict:
    return {prefix + name: value for name, value in values.items()}


def _config_text(config: Mapping) -> str:
    return ", ".join(f"{name}={_value_text(value)}" for name, value in config.items())


def _value_text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)


def _interval_text(low: Optional[float], high: Optional[float]) -> str:
    return f"{_format_number(low)} .. {_format_number(high)}"
