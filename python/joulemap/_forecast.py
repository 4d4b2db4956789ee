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
        position = f"after {self.done} of {'?' if self.steps is None else self.steps} steps"
        if self.time_s is None:
            return f"{position}: unknown ({self.reason})"
        duration = (
            f"in {_format_seconds(self.time_s)} ({_format_seconds(self.low_s)} .. {_format_seconds(self.high_s)})"
        )
        if self.energy_j is None:
            return f"{position}: energy unknown ({self.reason}) {duration}"
        bounds = f"{_format_number(self.low_j)} .. {_format_number(self.high_j)}"
        return f"{position}: {_format_number(self.energy_j)} J ({bounds}) {duration}, {self.provenance}"


def _format_seconds(value_s: Optional[float]) -> str:
    return f"{_format_number(value_s)} s"


def _make_unknown_total(reason: str, done: int, steps: Optional[int]) -> Total:
    return Total(None, None, None, None, None, None, None, reason, None, None, None, done, steps)


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
        window = begin(name)
        try:
            yield
        finally:
            window.end()
            step = self._step_mark_count - 1
            self._open_block[2].append((name, step, window))
            self._recurring_work_steps.setdefault(name, _OccurrenceSteps(step)).add(step)

    def end(self) -> Optional[Energy]:
        """Ends the training run, and returns its energy. total() then returns the measured value."""
        if self._training_window is not None:
            whole, self._training_window = self._training_window, None
            whole.end()
            self._open_block[1].end()
            _remove_listener(self._mark_listener)
            self.energy = whole.wait()
        return self.energy

    def total(self, wait: bool = False) -> Total:
        """The prediction from the steps so far. wait=True first waits until the energies of the last steps are final, at
        most 0.3 s for each group of steps."""
        if self.energy is not None:
            return _measured_total(self.energy, self._step_mark_count)
        self._settle_blocks(wait)
        steps = self._total_steps()
        blocks = [
            StepBlock(first, count, _make_block_series(energy, other)) for first, count, energy, other in self._blocks
        ]
        done = blocks[-1].end if blocks else 0
        if (reason := self._unknown_time_reason(blocks)) is not None:
            return _make_unknown_total(reason, done, steps)
        if steps is None:
            return _make_unknown_total("the number of steps is known after the first epoch", done, None)
        if not blocks or self._setup_energy is None:
            return _make_unknown_total("no step has ended and settled", done, steps)
        if len(blocks) < MIN_BLOCKS and done < steps:
            return _make_unknown_total(
                "too few steps have settled: the first ones are slower than the others", done, steps
            )
        return _TotalComputation(self, blocks, max(steps, done)).total()

    def _unknown_time_reason(self, blocks: list) -> Optional[str]:
        """Why a duration is unknown: the process was forked, or the measurement ended. None if all are known."""
        setup = [] if self._setup_energy is None else [_make_block_series(*self._setup_energy)]
        if all(values["time"] is not None for values in (*setup, *(block.values for block in blocks))):
            return None
        energies = [
            *([] if self._setup_energy is None else [self._setup_energy[0]]),
            *(entry[2] for entry in self._blocks),
        ]
        reasons = [energy.reason for energy in energies if energy.seconds is None and energy.reason]
        return reasons[0] if reasons else "the duration of a part is unknown"

    def _mark_step(self) -> None:
        """Closes the block of steps if it is long enough, and opens the next one."""
        if self._training_window is None:
            return
        now_s = time.monotonic()
        first, window, _ = self._open_block
        if (
            self._step_mark_count == 0
            or self._step_mark_count <= SINGLE_STEP_BLOCK_COUNT
            or now_s - self._block_begin_s >= self._target_block_s
        ):
            following = begin("steps")
            window.end()
            self._pending_blocks.append(
                (self._step_mark_count - first if self._step_mark_count else 0, *self._open_block)
            )
            self._open_block, self._block_begin_s = [self._step_mark_count, following, []], now_s
            self._settle_blocks(wait=False)
        self._step_mark_count += 1

    def _discard_step_marks(self) -> None:
        """step() is called beside jm.step(): only one of them may count. The steps so far become part of the setup."""
        if self._step_mark_count:
            self._open_block[1].end()
            self._pending_blocks.append((0, *self._open_block))
            self._pending_blocks = collections.deque((0, *entry[1:]) for entry in self._pending_blocks)
            for _, _, energy, other in self._blocks:
                self._add_to_setup(energy, other)
            self._recurring_work_steps = {name: _OccurrenceSteps(-1) for name in self._recurring_work_steps}
            self._step_mark_count, self._epoch_marks, self._blocks = 0, [], []
            self._open_block = [0, begin("setup"), []]

    def _add_to_setup(self, energy: Energy, other: dict) -> None:
        if self._setup_energy is not None:
            energy, other = _add_energies(self._setup_energy[0], energy), _sum_two_series(self._setup_energy[1], other)
        self._setup_energy = (energy, other)

    def _settle_blocks(self, wait: bool) -> None:
        """Moves ended blocks whose energy is final to the settled ones."""
        while self._pending_blocks:
            steps, first, window, other = self._pending_blocks[0]
            if not wait and not window.peek().settled:
                return
            self._pending_blocks.popleft()
            energy = window.wait()
            settled_recurring_work = self._add_occurrences(other)
            if steps == 0:
                self._add_to_setup(energy, settled_recurring_work)
            else:
                self._blocks.append((first, steps, energy, settled_recurring_work))
        if len(self._blocks) > MAX_BLOCKS:
            self._merge_blocks()

    def _add_occurrences(self, work: list) -> dict:
        """Counts the work of a block that was measured separately, one occurrence for each name and step. Returns its
        series, summed."""
        occurrences: dict = {}
        for name, step, window in work:
            occurrences[name, step] = _sum_two_series(
                occurrences.get((name, step), {}), _make_block_series(window.wait(), {})
            )
        total: dict = {}
        for (name, _), series in occurrences.items():
            total = _sum_two_series(total, series)
            moments = self._recurring_work_costs.setdefault(name, {})
            count = next(iter(moments.values())).count if moments else 0
            for key in {**moments, **series}:
                moments.setdefault(key, OccurrenceMoments(count, None if count else 0.0)).add(series.get(key))
        return total

    def _merge_blocks(self) -> None:
        """Halves the number of blocks, and doubles the duration of further ones."""
        self._target_block_s *= 2
        head, rest = self._blocks[:SINGLE_STEP_BLOCK_COUNT], self._blocks[SINGLE_STEP_BLOCK_COUNT:]
        pairs = [_merge_two_blocks(*rest[index : index + 2]) for index in range(0, len(rest) - 1, 2)]
        self._blocks = [*head, *pairs, *(rest[-1:] if len(rest) % 2 else [])]

    def _total_steps(self) -> Optional[int]:
        if self._steps is not None:
            return self._steps
        per_epoch = self._epoch_length()
        return None if per_epoch is None or self._epochs is None else self._epochs * per_epoch

    def _epoch_length(self) -> Optional[int]:
        """Steps of an epoch: as given, or of the first epochs that ended."""
        if self._steps_per_epoch is not None:
            return self._steps_per_epoch
        marks = self._epoch_marks
        length = round((marks[-1] - marks[0]) / (len(marks) - 1)) if len(marks) > 1 else 0
        return length or None

    def _recurring_kinds(self, blocks: list) -> list:
        """The recurring work: declared, measured separately, at the end of epochs, found as pauses."""
        declared = dict(self._declared_periods or {})
        if self._declared_periods is None and self._epoch_length() is not None:
            declared["epoch"] = self._epoch_length()
        kinds = []
        for name, period in sorted(declared.items(), key=lambda item: item[1]):
            if name not in self._recurring_work_steps:
                kinds.append(choose_period_offset(name, period, blocks))
        for name, work in self._recurring_work_steps.items():
            period = declared.get(name) or work.period() or self._epoch_length()
            if period is not None:
                kinds.append(RecurringWorkKind(name, period, work.last % period))
        if self._declared_periods is None:
            found = find_recurring_pauses(blocks, kinds)
            kinds += [found] if found is not None else []
        return kinds


def _make_mark_listener(forecast: weakref.ref) -> Any:
    """Passes the marks of jm.step() and jm.epoch() to a Forecast until it is deleted."""

    def handle_mark(mark: str) -> None:
        target = forecast()
        if target is None:
            _remove_listener(handle_mark)
        elif mark == "epoch":
            target.epoch()
        elif not target._has_explicit_steps:
            target._mark_step()

    return handle_mark


def _remove_listener(listener: Any) -> None:
    with contextlib.suppress(ValueError):
        _marks.mark_listeners.remove(listener)


class _OccurrenceSteps:
    """The steps in which work was measured separately."""

    def __init__(self, step: int) -> None:
        self.first, self.last, self.count = step, step, 1  # number of different steps

    def add(self, step: int) -> None:
        self.count += step != self.last
        self.last = step

    def period(self) -> Optional[int]:
        """Mean distance of the steps, or the number of steps until the only one. None if the only one was before the
        first step."""
        if self.count > 1:
            return max(1, round((self.last - self.first) / (self.count - 1)))
        return self.first + 1 if self.first >= 0 else None


def _merge_two_blocks(one: tuple, other: tuple) -> tuple:
    return one[0], one[1] + other[1], _add_energies(one[2], other[2]), _sum_two_series(one[3], other[3])


def _sum_two_series(one: dict, other: dict) -> dict:
    """Sums of two series; None where one of them is unknown. Empty series are no work."""
    if not one or not other:
        return one or other
    return {name: _add_or_none(one.get(name), other.get(name)) for name in {**one, **other}}


def _add_or_none(one: Optional[float], other: Optional[float]) -> Optional[float]:
    return None if one is None or other is None else one + other


def _add_energies(one: Energy, other: Energy) -> Energy:
    """The energy of two consecutive windows. Energies of different provenance are not added: the sum is unknown."""
    has_same_provenance = one.provenance == other.provenance and None not in (one.joules, other.joules)
    names = {domain.name: domain for domain in other.domains}
    domains = []
    for domain in one.domains if has_same_provenance else []:
        following = names.get(domain.name)
        if following is not None and None not in (domain.joules, following.joules):
            joules = domain.joules + following.joules  # type: ignore[operator]
            domains.append(type(domain)(**{**vars(domain), "joules": joules}))
    return Energy(
        joules=one.joules + other.joules if has_same_provenance else None,  # type: ignore[operator]
        uncertainty_j=max(one.uncertainty_j or 0, other.uncertainty_j or 0) if has_same_provenance else None,
        seconds=_add_or_none(one.seconds, other.seconds),
        watts=None,
        provenance=one.provenance if has_same_provenance else None,
        reason=one.reason
        or other.reason
        or ("" if has_same_provenance else "the provenance changed during the training"),
        settled=True,
        begin_ns=one.begin_ns,
        end_ns=other.end_ns,
        domains=domains,
    )


def _make_block_series(energy: Energy, other: dict) -> dict:
    """The series of a block: "time", "energy" and one for each domain, without those of work measured separately."""
    values: dict = {"time": energy.seconds, "energy": energy.joules}
    values.update({f"domain {domain.name}": domain.joules for domain in energy.domains})
    return {name: _subtract_or_none(value, other.get(name)) for name, value in values.items()} if other else values


def _subtract_or_none(value: Optional[float], other: Optional[float]) -> Optional[float]:
    return None if value is None or other is None else max(0.0, value - other)


def _measured_total(energy: Energy, done: int) -> Total:
    """The result after end(): measured, no longer predicted."""
    domains = [
        DomainForecast(
            domain.name, domain.joules, domain.joules, domain.joules, domain.provenance or "", domain.counted
        )
        for domain in energy.domains
        if domain.joules is not None
    ]
    joules, seconds = energy.joules, energy.seconds
    uncertainty = None if not joules or energy.uncertainty_j is None else energy.uncertainty_j / joules
    return Total(
        joules, joules, joules, seconds, seconds, seconds, energy.provenance, energy.reason, uncertainty, joules, seconds,
        done, done, domains=domains,
    )  # fmt: skip


class _TotalComputation:
    """Computes one Total from the settled blocks of a Forecast."""

    def __init__(self, forecast: Forecast, blocks: list, steps: int) -> None:
        self._forecast, self._blocks, self._steps = forecast, blocks, steps
        self._done_steps = blocks[-1].end
        self._recurring_kinds = forecast._recurring_kinds(blocks)
        self._warm_up_block_count = count_warm_up_blocks(blocks, self._recurring_kinds)
        assert forecast._setup_energy is not None
        self._setup_energy, setup_work = forecast._setup_energy
        self._setup_values = _make_block_series(self._setup_energy, setup_work)
        self._block_energies = [self._setup_energy, *(entry[2] for entry in forecast._blocks)]

    def total(self) -> Total:
        duration = self._forecast_series("time")
        reason = self._unknown_reason()
        energy = None if reason or duration is None else self._forecast_series("energy")
        spent_j = None if reason else sum(entry.joules for entry in self._block_energies)
        spent_s = sum(entry.seconds or 0 for entry in self._block_energies)
        last = self._block_energies[-1]
        result = energy or SeriesForecast(*[None] * 6)  # type: ignore[arg-type]
        assert duration is not None  # durations are always known
        return Total(
            result.total, result.low, result.high, duration.total, duration.low, duration.high,
            last.provenance if energy else None, reason, self._sensor_uncertainty() if energy else None, spent_j, spent_s,
            self._done_steps, self._steps, sum(block.steps for block in self._blocks[: self._warm_up_block_count]),
            [self._make_recurring_work(kind, duration, energy) for kind in self._recurring_kinds],
            [] if energy is None else self._forecast_domains(), self._make_forecast_notes(duration),
        )  # fmt: skip

    def _unknown_reason(self) -> str:
        """Why the energy is unknown."""
        unknown = next((entry for entry in self._block_energies if entry.joules is None), None)
        if unknown is not None:
            return unknown.reason
        if len({entry.provenance for entry in self._block_energies}) > 1:
            return "a part of the energy is measured and a part estimated: they are not added"
        return ""

    def _forecast_series(self, series: str) -> Optional[SeriesForecast]:
        """The total of a series; None if a value of it is unknown."""
        work = {name: moments.get(series) for name, moments in self._forecast._recurring_work_costs.items()}
        base = self._setup_values.get(series)
        known = [block.values.get(series) for block in self._blocks]
        if base is None or None in known:
            return None
        left = {kind.name: kind.count_occurrences(self._done_steps, self._steps) for kind in self._recurring_kinds}
        separate = {}
        for name, moments in work.items():
            if moments is None or moments.total is None:
                return None
            separate[name] = moments.cost(left.get(name, 0))
            base += moments.total
        series_forecast = forecast_series(
            series, self._blocks, self._recurring_kinds, self._warm_up_block_count, self._steps, base, separate
        )
        is_declared = self._forecast._declared_periods is not None
        return add_unseen_work(
            series_forecast,
            self._recurring_kinds,
            self._done_steps,
            self._steps,
            is_declared,
            self._forecast._evaluation_steps,
        )

    def _sensor_uncertainty(self) -> Optional[float]:
        """Relative uncertainty of the longest window: those of short windows contain the period of the sensor."""
        longest = max(self._block_energies, key=lambda entry: entry.seconds or 0)
        return None if longest.uncertainty_j is None or not longest.joules else longest.uncertainty_j / longest.joules

    def _make_recurring_work(
        self, kind: RecurringWorkKind, duration: SeriesForecast, energy: Optional[SeriesForecast]
    ) -> RecurringWork:
        time_cost = duration.costs.get(kind.name)
        energy_cost = None if energy is None else energy.costs.get(kind.name)
        return RecurringWork(
            kind.name, kind.period, 0 if time_cost is None else time_cost.occurrence_count,
            kind.count_occurrences(self._done_steps, self._steps), None if energy_cost is None else energy_cost.value,
            None if time_cost is None else time_cost.value,
        )  # fmt: skip

    def _forecast_domains(self) -> list:
        domains = []
        for domain in self._block_energies[-1].domains:
            series_forecast = self._forecast_series(f"domain {domain.name}")
            if series_forecast is not None and domain.provenance is not None:
                bounds = series_forecast.total, series_forecast.low, series_forecast.high
                domains.append(DomainForecast(domain.name, *bounds, domain.provenance, domain.counted))
        return domains

    def _make_forecast_notes(self, duration: SeriesForecast) -> list:
        notes = []
        unseen = [kind for kind in self._recurring_kinds if kind.name not in duration.costs]
        for kind in unseen:
            if self._forecast._evaluation_steps is not None and kind.name == evaluation_kind_name(
                self._recurring_kinds
            ):
                batches = self._forecast._evaluation_steps
                notes.append(
                    f"no {kind.name} has ended yet: each of its {batches} batches is assumed to cost a third of a step"
                )
            else:
                notes.append(f"no {kind.name} has ended yet: the total does not contain it, the upper bound does")
        if not self._recurring_kinds and self._forecast._declared_periods is None:
            notes.append("no evaluation or checkpoint was found: declare them with every= or steps_per_epoch=")
        if duration.has_drift:
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
    per_epoch, batches = (
        _validate_count(steps_per_epoch, "steps_per_epoch"),
        _validate_count(evaluation_steps, "evaluation_steps"),
    )
    if steps is None and per_epoch is not None:
        steps = epochs * per_epoch  # type: ignore[operator]
    for name, value in {"steps": steps, "epochs": epochs, "steps_per_epoch": per_epoch, **(every or {})}.items():
        if value is not None and (int(value) != value or value < 1):
            raise ValueError(f"{name} must be a positive integer, not {value!r}")
    return Forecast(steps, epochs, per_epoch, every, batches)


def _validate_count(value: Any, name: str) -> Optional[int]:
    """A number, or the length of a loader."""
    if value is None or isinstance(value, int):
        return value
    try:
        return len(value)
    except TypeError:
        raise TypeError(f"{name} must be a number or have a length, not a {type(value).__name__}") from None
