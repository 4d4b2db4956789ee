# SPDX-License-Identifier: Apache-2.0
"""jm.predict_total: the energy and time of a whole training, predicted from its first steps. Forecast measures blocks
of steps as windows (jm.measure); _forecast_statistics computes the totals."""

from __future__ import annotations

import collections
import contextlib
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from . import _marks
from ._energy import Energy, _format_number
from ._forecast_statistics import (
    OccurrenceMoments, RecurringWorkKind, SeriesForecast, StepBlock, add_unseen_work, choose_period_offset,
    evaluation_kind_name, find_recurring_pauses, forecast_series, count_warm_up_blocks,
)  # fmt: skip
from ._measure import Measurement, begin

# With fewer blocks, all may belong to the warm-up.
MIN_BLOCKS = 4
# The first steps are blocks of their own, because the warm-up ends among them; later blocks have this duration at least.
SINGLE_STEP_BLOCK_COUNT = 10
TARGET_BLOCK_S = 0.05
MAX_BLOCKS = 256


@dataclass(frozen=True)
class DomainForecast:
    """The predicted energy of one part of the machine."""

    name: str  # "package-0", "dram-0", "gpu0"
    energy_j: float  # energy of the whole training, in J
    low_j: float  # lower bound of the 90 % interval, in J
    high_j: float  # upper bound of the 90 % interval, in J
    provenance: str  # "measured" or "estimated": of the energy so far
    counted: bool  # included in the sum; False if another domain contains it


@dataclass(frozen=True)
class RecurringWork:
    """Work that recurs between steps: evaluation, checkpoints, the end of an epoch."""

    name: str  # as declared; "epoch" for work at the end of each epoch, "pause" if only its period is known
    period: int  # number of steps from one occurrence to the next
    seen: int  # occurrences so far; 0 before the first one, which widens the interval upwards
    left: int  # occurrences to come
    energy_j: Optional[float]  # energy of one occurrence, in J; None if unknown
    time_s: Optional[float]  # duration of one occurrence, in s; None before the first one


@dataclass(frozen=True)
class Total:
    """The energy and time of a whole training run. The 90 % intervals predict what jm.measure around the whole run would
    report. They exclude errors of the sensors: see `sensor_uncertainty`."""

    energy_j: Optional[float]  # energy of the whole training, in J; None if unknown
    low_j: Optional[float]  # lower bound of the 90 % interval, in J
    high_j: Optional[float]  # upper bound of the 90 % interval, in J
    time_s: Optional[float]  # duration of the whole training, in s; None before the second step
    low_s: Optional[float]  # lower bound of the 90 % interval, in s
    high_s: Optional[float]  # upper bound of the 90 % interval, in s
    provenance: Optional[str]  # "measured" or "estimated": of the energy so far; None without energy
    reason: str  # why the energy is unknown; otherwise empty
    sensor_uncertainty: Optional[float]  # relative half width of the 95 % interval of the energy so far
    spent_j: Optional[float]  # energy of the steps so far, in J
    spent_s: Optional[float]  # time of the steps so far, in s
    done: int  # steps so far
    steps: Optional[int]  # steps of the whole training; None if still unknown
    warm_up_steps: int = 0  # slower steps at the beginning: part of the total, but not of the rate of later steps
    recurring: list[RecurringWork] = field(default_factory=list)  # evaluation, checkpoints ...
    domains: list[DomainForecast] = field(default_factory=list)  # one for each package, memory, GPU ...
    notes: list[str] = field(default_factory=list)  # what the prediction does not contain yet

    def __str__(self) -> str:
        progress_text = f"after {self.done} of {'?' if self.steps is None else self.steps} steps"
        if self.time_s is None:
            return f"{progress_text}: unknown ({self.reason})"
        duration_text = (
            f"in {_format_seconds(self.time_s)} ({_format_seconds(self.low_s)} .. {_format_seconds(self.high_s)})"
        )
        if self.energy_j is None:
            return f"{progress_text}: energy unknown ({self.reason}) {duration_text}"
        bounds_text = f"{_format_number(self.low_j)} .. {_format_number(self.high_j)}"
        return f"{progress_text}: {_format_number(self.energy_j)} J ({bounds_text}) {duration_text}, {self.provenance}"


def _format_seconds(value_s: Optional[float]) -> str:
    return f"{_format_number(value_s)} s"


def _make_unknown_total(reason: str, done_steps: int, total_steps: Optional[int]) -> Total:
    return Total(None, None, None, None, None, None, None, reason, None, None, None, done_steps, total_steps)


class Forecast:
    """The running prediction of a training run: the result of predict_total(). Not thread-safe."""

    def __init__(
        self, steps: Optional[int], epochs: Optional[int], steps_per_epoch: Optional[int], every: Optional[dict],
        evaluation_steps: Optional[int],
    ) -> None:  # fmt: skip
        self._steps, self._epochs, self._steps_per_epoch = steps, epochs, steps_per_epoch
        self._declared_periods, self._evaluation_steps = every, evaluation_steps
        self._setup_energy: Optional[tuple] = None  # Energy before the first step, and the series of other work in it
        self._blocks: list = []  # (first step, steps, Energy, series of other work) of settled blocks
        self._pending_blocks: collections.deque = collections.deque()
        # First step, its window, other work in it: (name, step, window).
        self._open_block: list = [0, begin("setup"), []]
        self._block_begin_s = time.monotonic()
        self._step_mark_count = 0
        self._epoch_marks: list = []  # numbers of steps at which epochs began
        self._recurring_work_steps: dict = {}  # name -> _OccurrenceSteps in which it was measured separately
        self._recurring_work_costs: dict = {}  # name -> series -> OccurrenceMoments of that work in settled blocks
        self._has_explicit_steps = False
        self._target_block_s = TARGET_BLOCK_S
        self.energy: Optional[Energy] = None  # energy of the whole training, set by end()
        self._training_window: Optional[Measurement] = begin("training")
        self._mark_listener = _make_mark_listener(weakref.ref(self))
        _marks.mark_listeners.append(self._mark_listener)

    def step(self) -> None:
        """Marks the beginning of a step. Call it once a step, at the same place of the loop. Unnecessary if the loop
        calls jm.step()."""
        if not self._has_explicit_steps:
            self._has_explicit_steps = True
            self._discard_step_marks()
        self._mark_step()

    def epoch(self) -> None:
        """Marks the beginning of an epoch. Unnecessary if the loop calls jm.epoch(), or with `steps_per_epoch`."""
        if self._step_mark_count not in self._epoch_marks[-1:]:  # jm.epoch() may mark it, too
            self._epoch_marks.append(self._step_mark_count)

    @contextlib.contextmanager
    def other(self, name: str) -> Iterator[None]:
        """Measures work between steps separately, which narrows its interval: `with forecast.other("evaluation"): ...`
        An evaluation before the first step makes the cost of all evaluations known from the beginning. Work with the
        same name in the same step is one occurrence."""
        work_window = begin(name)
        try:
            yield
        finally:
            work_window.end()
            step = self._step_mark_count - 1
            self._open_block[2].append((name, step, work_window))
            self._recurring_work_steps.setdefault(name, _OccurrenceSteps(step)).add(step)

    def end(self) -> Optional[Energy]:
        """Ends the training run, and returns its energy. total() then returns the measured value."""
        if self._training_window is not None:
            training_window, self._training_window = self._training_window, None
            training_window.end()
            self._open_block[1].end()
            _remove_listener(self._mark_listener)
            self.energy = training_window.wait()
        return self.energy

    def total(self, wait: bool = False) -> Total:
        """The prediction from the steps so far. wait=True first waits until the energies of the last steps are final, at
        most 0.3 s for each group of steps."""
        if self.energy is not None:
            return _measured_total(self.energy, self._step_mark_count)
        self._settle_blocks(wait)
        total_steps = self._total_steps()
        blocks = [
            StepBlock(first_step, step_count, _make_block_series(energy, separate_series))
            for first_step, step_count, energy, separate_series in self._blocks
        ]
        done_steps = blocks[-1].end if blocks else 0
        if (reason := self._unknown_time_reason(blocks)) is not None:
            return _make_unknown_total(reason, done_steps, total_steps)
        if total_steps is None:
            return _make_unknown_total("the number of steps is known after the first epoch", done_steps, None)
        if not blocks or self._setup_energy is None:
            return _make_unknown_total("no step has ended and settled", done_steps, total_steps)
        if len(blocks) < MIN_BLOCKS and done_steps < total_steps:
            return _make_unknown_total(
                "too few steps have settled: the first ones are slower than the others", done_steps, total_steps
            )
        return _TotalComputation(self, blocks, max(total_steps, done_steps)).total()

    def _unknown_time_reason(self, blocks: list) -> Optional[str]:
        """Why a duration is unknown: the process was forked, or the measurement ended. None if all are known."""
        setup_series = [] if self._setup_energy is None else [_make_block_series(*self._setup_energy)]
        if all(series["time"] is not None for series in (*setup_series, *(block.values for block in blocks))):
            return None
        window_energies = [
            *([] if self._setup_energy is None else [self._setup_energy[0]]),
            *(settled_block[2] for settled_block in self._blocks),
        ]
        unknown_reasons = [energy.reason for energy in window_energies if energy.seconds is None and energy.reason]
        return unknown_reasons[0] if unknown_reasons else "the duration of a part is unknown"

    def _mark_step(self) -> None:
        """Closes the block of steps if it is long enough, and opens the next one."""
        if self._training_window is None:
            return
        now_s = time.monotonic()
        first_step, window, _ = self._open_block
        if (
            self._step_mark_count == 0
            or self._step_mark_count <= SINGLE_STEP_BLOCK_COUNT
            or now_s - self._block_begin_s >= self._target_block_s
        ):
            next_window = begin("steps")
            window.end()
            self._pending_blocks.append(
                (self._step_mark_count - first_step if self._step_mark_count else 0, *self._open_block)
            )
            self._open_block, self._block_begin_s = [self._step_mark_count, next_window, []], now_s
            self._settle_blocks(wait=False)
        self._step_mark_count += 1

    def _discard_step_marks(self) -> None:
        """step() is called beside jm.step(): only one of them may count. The steps so far become part of the setup."""
        if self._step_mark_count:
            self._open_block[1].end()
            self._pending_blocks.append((0, *self._open_block))
            self._pending_blocks = collections.deque((0, *pending_block[1:]) for pending_block in self._pending_blocks)
            for _, _, energy, separate_series in self._blocks:
                self._add_to_setup(energy, separate_series)
            self._recurring_work_steps = {name: _OccurrenceSteps(-1) for name in self._recurring_work_steps}
            self._step_mark_count, self._epoch_marks, self._blocks = 0, [], []
            self._open_block = [0, begin("setup"), []]

    def _add_to_setup(self, energy: Energy, separate_series: dict) -> None:
        if self._setup_energy is not None:
            energy, separate_series = (
                _add_energies(self._setup_energy[0], energy),
                _sum_two_series(self._setup_energy[1], separate_series),
            )
        self._setup_energy = (energy, separate_series)

    def _settle_blocks(self, wait: bool) -> None:
        """Moves ended blocks whose energy is final to the settled ones."""
        while self._pending_blocks:
            step_count, first_step, window, separate_work = self._pending_blocks[0]
            if not wait and not window.peek().settled:
                return
            self._pending_blocks.popleft()
            energy = window.wait()
            separate_series = self._add_occurrences(separate_work)
            if step_count == 0:
                self._add_to_setup(energy, separate_series)
            else:
                self._blocks.append((first_step, step_count, energy, separate_series))
        if len(self._blocks) > MAX_BLOCKS:
            self._merge_blocks()

    def _add_occurrences(self, separate_work: list) -> dict:
        """Counts the work of a block that was measured separately, one occurrence for each name and step. Returns its
        series, summed."""
        series_by_occurrence: dict = {}
        for name, step, window in separate_work:
            series_by_occurrence[name, step] = _sum_two_series(
                series_by_occurrence.get((name, step), {}), _make_block_series(window.wait(), {})
            )
        summed_series: dict = {}
        for (name, _), series in series_by_occurrence.items():
            summed_series = _sum_two_series(summed_series, series)
            moments_by_series = self._recurring_work_costs.setdefault(name, {})
            earlier_occurrences = next(iter(moments_by_series.values())).count if moments_by_series else 0
            for series_name in {**moments_by_series, **series}:
                moments_by_series.setdefault(
                    series_name, OccurrenceMoments(earlier_occurrences, None if earlier_occurrences else 0.0)
                ).add(series.get(series_name))
        return summed_series

    def _merge_blocks(self) -> None:
        """Halves the number of blocks, and doubles the duration of further ones."""
        self._target_block_s *= 2
        single_step_blocks, later_blocks = (
            self._blocks[:SINGLE_STEP_BLOCK_COUNT],
            self._blocks[SINGLE_STEP_BLOCK_COUNT:],
        )
        merged_blocks = [
            _merge_two_blocks(*later_blocks[first_index : first_index + 2])
            for first_index in range(0, len(later_blocks) - 1, 2)
        ]
        self._blocks = [*single_step_blocks, *merged_blocks, *(later_blocks[-1:] if len(later_blocks) % 2 else [])]

    def _total_steps(self) -> Optional[int]:
        if self._steps is not None:
            return self._steps
        epoch_length = self._epoch_length()
        return None if epoch_length is None or self._epochs is None else self._epochs * epoch_length

    def _epoch_length(self) -> Optional[int]:
        """Steps of an epoch: as given, or of the first epochs that ended."""
        if self._steps_per_epoch is not None:
            return self._steps_per_epoch
        epoch_marks = self._epoch_marks
        epoch_length = round((epoch_marks[-1] - epoch_marks[0]) / (len(epoch_marks) - 1)) if len(epoch_marks) > 1 else 0
        return epoch_length or None

    def _recurring_kinds(self, blocks: list) -> list:
        """The recurring work: declared, measured separately, at the end of epochs, found as pauses."""
        declared_periods = dict(self._declared_periods or {})
        if self._declared_periods is None and self._epoch_length() is not None:
            declared_periods["epoch"] = self._epoch_length()
        kinds = []
        for name, period in sorted(declared_periods.items(), key=lambda item: item[1]):
            if name not in self._recurring_work_steps:
                kinds.append(choose_period_offset(name, period, blocks))
        for name, occurrence_steps in self._recurring_work_steps.items():
            period = declared_periods.get(name) or occurrence_steps.period() or self._epoch_length()
            if period is not None:
                kinds.append(RecurringWorkKind(name, period, occurrence_steps.last_step % period))
        if self._declared_periods is None:
            pause_kind = find_recurring_pauses(blocks, kinds)
            kinds += [pause_kind] if pause_kind is not None else []
        return kinds


def _make_mark_listener(forecast: weakref.ref) -> Any:
    """Passes the marks of jm.step() and jm.epoch() to a Forecast until it is deleted."""

    def handle_mark(mark: str) -> None:
        live_forecast = forecast()
        if live_forecast is None:
            _remove_listener(handle_mark)
        elif mark == "epoch":
            live_forecast.epoch()
        elif not live_forecast._has_explicit_steps:
            live_forecast._mark_step()

    return handle_mark


def _remove_listener(listener: Any) -> None:
    with contextlib.suppress(ValueError):
        _marks.mark_listeners.remove(listener)


class _OccurrenceSteps:
    """The steps in which work was measured separately."""

    def __init__(self, step: int) -> None:
        self.first_step, self.last_step, self.step_count = step, step, 1  # number of different steps

    def add(self, step: int) -> None:
        self.step_count += step != self.last_step
        self.last_step = step

    def period(self) -> Optional[int]:
        """Mean distance of the steps, or the number of steps until the only one. None if the only one was before the
        first step."""
        if self.step_count > 1:
            return max(1, round((self.last_step - self.first_step) / (self.step_count - 1)))
        return self.first_step + 1 if self.first_step >= 0 else None


def _merge_two_blocks(earlier_block: tuple, later_block: tuple) -> tuple:
    return (
        earlier_block[0],
        earlier_block[1] + later_block[1],
        _add_energies(earlier_block[2], later_block[2]),
        _sum_two_series(earlier_block[3], later_block[3]),
    )


def _sum_two_series(first_series: dict, second_series: dict) -> dict:
    """Sums of two series; None where one of them is unknown. Empty series are no work."""
    if not first_series or not second_series:
        return first_series or second_series
    return {
        name: _add_or_none(first_series.get(name), second_series.get(name))
        for name in {**first_series, **second_series}
    }


def _add_or_none(first_value: Optional[float], second_value: Optional[float]) -> Optional[float]:
    return None if first_value is None or second_value is None else first_value + second_value


def _add_energies(earlier_energy: Energy, later_energy: Energy) -> Energy:
    """The energy of two consecutive windows. Energies of different provenance are not added: the sum is unknown."""
    has_same_provenance = earlier_energy.provenance == later_energy.provenance and None not in (
        earlier_energy.joules,
        later_energy.joules,
    )
    later_domains = {domain.name: domain for domain in later_energy.domains}
    domains = []
    for domain in earlier_energy.domains if has_same_provenance else []:
        later_domain = later_domains.get(domain.name)
        if later_domain is not None and None not in (domain.joules, later_domain.joules):
            joules = domain.joules + later_domain.joules  # type: ignore[operator]
            domains.append(type(domain)(**{**vars(domain), "joules": joules}))
    return Energy(
        joules=earlier_energy.joules + later_energy.joules if has_same_provenance else None,  # type: ignore[operator]
        uncertainty_j=max(earlier_energy.uncertainty_j or 0, later_energy.uncertainty_j or 0)
        if has_same_provenance
        else None,
        seconds=_add_or_none(earlier_energy.seconds, later_energy.seconds),
        watts=None,
        provenance=earlier_energy.provenance if has_same_provenance else None,
        reason=earlier_energy.reason
        or later_energy.reason
        or ("" if has_same_provenance else "the provenance changed during the training"),
        settled=True,
        begin_ns=earlier_energy.begin_ns,
        end_ns=later_energy.end_ns,
        domains=domains,
    )


def _make_block_series(energy: Energy, separate_series: dict) -> dict:
    """The series of a block: "time", "energy" and one for each domain, without those of work measured separately."""
    series: dict = {"time": energy.seconds, "energy": energy.joules}
    series.update({f"domain {domain.name}": domain.joules for domain in energy.domains})
    return (
        {name: _subtract_or_none(value, separate_series.get(name)) for name, value in series.items()}
        if separate_series
        else series
    )


def _subtract_or_none(value: Optional[float], subtracted_value: Optional[float]) -> Optional[float]:
    return None if value is None or subtracted_value is None else max(0.0, value - subtracted_value)


def _measured_total(energy: Energy, done_steps: int) -> Total:
    """The result after end(): measured, no longer predicted."""
    domains = [
        DomainForecast(
            domain.name, domain.joules, domain.joules, domain.joules, domain.provenance or "", domain.counted
        )
        for domain in energy.domains
        if domain.joules is not None
    ]
    joules, seconds = energy.joules, energy.seconds
    relative_uncertainty = None if not joules or energy.uncertainty_j is None else energy.uncertainty_j / joules
    return Total(
        joules, joules, joules, seconds, seconds, seconds, energy.provenance, energy.reason, relative_uncertainty,
        joules, seconds, done_steps, done_steps, domains=domains,
    )  # fmt: skip


class _TotalComputation:
    """Computes one Total from the settled blocks of a Forecast."""

    def __init__(self, forecast: Forecast, blocks: list, total_steps: int) -> None:
        self._forecast, self._blocks, self._total_steps = forecast, blocks, total_steps
        self._done_steps = blocks[-1].end
        self._recurring_kinds = forecast._recurring_kinds(blocks)
        self._warm_up_block_count = count_warm_up_blocks(blocks, self._recurring_kinds)
        assert forecast._setup_energy is not None
        self._setup_energy, setup_separate_series = forecast._setup_energy
        self._setup_values = _make_block_series(self._setup_energy, setup_separate_series)
        self._block_energies = [self._setup_energy, *(settled_block[2] for settled_block in forecast._blocks)]

    def total(self) -> Total:
        time_forecast = self._forecast_series("time")
        unknown_reason = self._unknown_reason()
        energy_forecast = None if unknown_reason or time_forecast is None else self._forecast_series("energy")
        spent_j = None if unknown_reason else sum(block_energy.joules for block_energy in self._block_energies)
        spent_s = sum(block_energy.seconds or 0 for block_energy in self._block_energies)
        last_energy = self._block_energies[-1]
        energy_or_unknown = energy_forecast or SeriesForecast(*[None] * 6)  # type: ignore[arg-type]
        assert time_forecast is not None  # durations are always known
        return Total(
            energy_or_unknown.total, energy_or_unknown.low, energy_or_unknown.high,
            time_forecast.total, time_forecast.low, time_forecast.high,
            last_energy.provenance if energy_forecast else None, unknown_reason,
            self._sensor_uncertainty() if energy_forecast else None, spent_j, spent_s, self._done_steps,
            self._total_steps, sum(block.steps for block in self._blocks[: self._warm_up_block_count]),
            [self._make_recurring_work(kind, time_forecast, energy_forecast) for kind in self._recurring_kinds],
            [] if energy_forecast is None else self._forecast_domains(), self._make_forecast_notes(time_forecast),
        )  # fmt: skip

    def _unknown_reason(self) -> str:
        """Why the energy is unknown."""
        unknown_energy = next((energy for energy in self._block_energies if energy.joules is None), None)
        if unknown_energy is not None:
            return unknown_energy.reason
        if len({energy.provenance for energy in self._block_energies}) > 1:
            return "a part of the energy is measured and a part estimated: they are not added"
        return ""

    def _forecast_series(self, series_name: str) -> Optional[SeriesForecast]:
        """The total of a series; None if a value of it is unknown."""
        separate_moments = {
            name: moments.get(series_name) for name, moments in self._forecast._recurring_work_costs.items()
        }
        value_before_blocks = self._setup_values.get(series_name)
        block_values = [block.values.get(series_name) for block in self._blocks]
        if value_before_blocks is None or None in block_values:
            return None
        remaining_occurrences = {
            kind.name: kind.count_occurrences(self._done_steps, self._total_steps) for kind in self._recurring_kinds
        }
        separate_costs = {}
        for name, moments in separate_moments.items():
            if moments is None or moments.total is None:
                return None
            separate_costs[name] = moments.cost(remaining_occurrences.get(name, 0))
            value_before_blocks += moments.total
        series_forecast = forecast_series(
            series_name,
            self._blocks,
            self._recurring_kinds,
            self._warm_up_block_count,
            self._total_steps,
            value_before_blocks,
            separate_costs,
        )
        is_declared = self._forecast._declared_periods is not None
        return add_unseen_work(
            series_forecast,
            self._recurring_kinds,
            self._done_steps,
            self._total_steps,
            is_declared,
            self._forecast._evaluation_steps,
        )

    def _sensor_uncertainty(self) -> Optional[float]:
        """Relative uncertainty of the longest window: those of short windows contain the period of the sensor."""
        longest_window = max(self._block_energies, key=lambda energy: energy.seconds or 0)
        return (
            None
            if longest_window.uncertainty_j is None or not longest_window.joules
            else longest_window.uncertainty_j / longest_window.joules
        )

    def _make_recurring_work(
        self, kind: RecurringWorkKind, time_forecast: SeriesForecast, energy_forecast: Optional[SeriesForecast]
    ) -> RecurringWork:
        time_cost = time_forecast.costs.get(kind.name)
        energy_cost = None if energy_forecast is None else energy_forecast.costs.get(kind.name)
        return RecurringWork(
            kind.name, kind.period, 0 if time_cost is None else time_cost.occurrence_count,
            kind.count_occurrences(self._done_steps, self._total_steps),
            None if energy_cost is None else energy_cost.value,
            None if time_cost is None else time_cost.value,
        )  # fmt: skip

    def _forecast_domains(self) -> list:
        domain_forecasts = []
        for domain in self._block_energies[-1].domains:
            series_forecast = self._forecast_series(f"domain {domain.name}")
            if series_forecast is not None and domain.provenance is not None:
                total_and_bounds = series_forecast.total, series_forecast.low, series_forecast.high
                domain_forecasts.append(
                    DomainForecast(domain.name, *total_and_bounds, domain.provenance, domain.counted)
                )
        return domain_forecasts

    def _make_forecast_notes(self, time_forecast: SeriesForecast) -> list:
        notes = []
        unseen_kinds = [kind for kind in self._recurring_kinds if kind.name not in time_forecast.costs]
        for kind in unseen_kinds:
            if self._forecast._evaluation_steps is not None and kind.name == evaluation_kind_name(
                self._recurring_kinds
            ):
                evaluation_batches = self._forecast._evaluation_steps
                notes.append(
                    f"no {kind.name} has ended yet: each of its {evaluation_batches} batches is assumed to cost "
                    "a third of a step"
                )
            else:
                notes.append(f"no {kind.name} has ended yet: the total does not contain it, the upper bound does")
        if not self._recurring_kinds and self._forecast._declared_periods is None:
            notes.append("no evaluation or checkpoint was found: declare them with every= or steps_per_epoch=")
        if time_forecast.has_drift:
            notes.append("the steps become slower or faster: the prediction follows the later half of them")
        return notes


def predict_total(
    steps: Optional[int] = None,
    *,
    epochs: Optional[int] = None,
    steps_per_epoch: Union[int, Any, None] = None,
    every: Optional[dict] = None,
    evaluation_steps: Union[int, Any, None] = None,
) -> Forecast:
    """Predicts the energy and the time of a whole training run from its first steps, with 90 % intervals that narrow as
    it runs. Call it before the loop.

        forecast = jm.predict_total(epochs=10, steps_per_epoch=loader, evaluation_steps=validation_loader)
        for epoch in range(10):
            for batch in loader:
                forecast.step()                  # unnecessary if the loop calls jm.step()
                train(batch)
            print(forecast.total())
            evaluate(model)

    - `steps`: number of steps of the run; alternatively `epochs` and `steps_per_epoch`
    - `steps_per_epoch`: number of steps of an epoch, or the loader; by default the number of steps between jm.epoch() calls
    - `every`: period of other work, in steps: {"evaluation": 500, "checkpoint": 2000}; {} if there is none. By default,
      Joulemap detects work at the end of an epoch and pauses at regular intervals
    - `evaluation_steps`: number of batches of an evaluation, or its loader, for predictions before the first one

    The slower first steps count toward the total, but not toward the rate of later steps. Work that has not occurred yet
    widens the interval upwards, and `notes` of the result name it.
    """
    if steps is None and epochs is None:
        raise TypeError("predict_total needs steps=, or epochs= with steps_per_epoch=")
    epoch_length, evaluation_batches = (
        _validate_count(steps_per_epoch, "steps_per_epoch"),
        _validate_count(evaluation_steps, "evaluation_steps"),
    )
    if every is not None and not isinstance(every, dict):
        raise TypeError(f'every must name the work, as {{"evaluation": 500}}, not {every!r}')
    for name, value in {"epochs": epochs, "steps_per_epoch": epoch_length, "steps": steps, **(every or {})}.items():
        if value is not None and (int(value) != value or value < 1):
            raise ValueError(f"{name} must be a positive integer, not {value!r}")
    if steps is None and epoch_length is not None:
        steps = epochs * epoch_length  # type: ignore[operator]
    return Forecast(steps, epochs, epoch_length, every, evaluation_batches)


def _validate_count(count_or_loader: Any, parameter_name: str) -> Optional[int]:
    """A number, or the length of a loader."""
    if count_or_loader is None or isinstance(count_or_loader, int):
        return count_or_loader
    try:
        return len(count_or_loader)
    except TypeError:
        raise TypeError(
            f"{parameter_name} must be a number or have a length, not a {type(count_or_loader).__name__}"
        ) from None
