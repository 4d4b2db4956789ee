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
    Block, Kind, Outlook, add_unseen, choose_phase, cost_of, evaluation_kind, find_pauses, forecast_series, warm_up_blocks,
)  # fmt: skip
from ._measure import Measurement, begin

# With fewer blocks, all may belong to the warm-up.
MIN_BLOCKS = 4
# The first steps are blocks of their own, because the warm-up ends among them; later blocks have this duration at least.
SINGLE_STEPS = 10
BLOCK_S = 0.05
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

    name: str  # as declared; "epoch" at the end of each epoch, "pause" if only its period is known
    period: int  # in steps
    seen: int  # occurrences so far; 0 before the first one, which widens the interval upwards
    left: int  # occurrences to come
    energy_j: Optional[float]  # energy of one occurrence, in J; None if unknown
    time_s: Optional[float]  # duration of one occurrence, in s; None before the first one


@dataclass(frozen=True)
class Total:
    """The energy and time of a whole training. The intervals are those of the value that a window (jm.measure) over the
    whole training would show, at 90 %. The error of the sensors is not part of them: see `sensor_uncertainty`."""

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
    warm_up_steps: int = 0  # slower steps at the beginning: in the total, but not in the rate of the others
    recurring: list[RecurringWork] = field(default_factory=list)  # evaluation, checkpoints ...
    domains: list[DomainForecast] = field(default_factory=list)  # one for each package, memory, GPU ...
    notes: list[str] = field(default_factory=list)  # what the prediction does not contain yet

    def __str__(self) -> str:
        position = f"after {self.done} of {'?' if self.steps is None else self.steps} steps"
        if self.time_s is None:
            return f"{position}: unknown ({self.reason})"
        duration = f"in {_seconds(self.time_s)} ({_seconds(self.low_s)} .. {_seconds(self.high_s)})"
        if self.energy_j is None:
            return f"{position}: energy unknown ({self.reason}) {duration}"
        bounds = f"{_format_number(self.low_j)} .. {_format_number(self.high_j)}"
        return f"{position}: {_format_number(self.energy_j)} J ({bounds}) {duration}, {self.provenance}"


def _seconds(value_s: Optional[float]) -> str:
    return f"{_format_number(value_s)} s"


def _unknown(reason: str, done: int, steps: Optional[int]) -> Total:
    return Total(None, None, None, None, None, None, None, reason, None, None, None, done, steps)


class Forecast:
    """The running prediction of a training: the result of predict_total(). Used by one thread."""

    def __init__(
        self, steps: Optional[int], epochs: Optional[int], steps_per_epoch: Optional[int], every: Optional[dict],
        evaluation_steps: Optional[int],
    ) -> None:  # fmt: skip
        self._steps, self._epochs, self._steps_per_epoch = steps, epochs, steps_per_epoch
        self._every, self._evaluation_steps = every, evaluation_steps
        self._setup: Optional[tuple] = None  # Energy before the first step, and that of other work in it
        self._blocks: list = []  # [first step, steps, Energy, energies of other work] of settled blocks
        self._pending: collections.deque = collections.deque()
        self._open: list = [0, begin("setup"), []]  # first step, its window, other work in it
        self._opened_s = time.monotonic()
        self._marks = 0
        self._epoch_marks: list = []  # numbers of steps at which epochs began
        self._other_steps: dict = {}  # name -> steps in which it was measured separately
        self._is_explicit = False
        self._block_s = BLOCK_S
        self.energy: Optional[Energy] = None  # energy of the whole training, set by end()
        self._whole: Optional[Measurement] = begin("training")
        self._listener = _listener_of(weakref.ref(self))
        _marks.listeners.append(self._listener)

    def step(self) -> None:
        """Marks the beginning of a step. Call it once a step, at the same place of the loop. Unnecessary if the loop
        calls jm.step()."""
        if not self._is_explicit:
            self._is_explicit = True
            self._forget_marks()
        self._mark_step()

    def epoch(self) -> None:
        """Marks the beginning of an epoch. Unnecessary if the loop calls jm.epoch(), or with `steps_per_epoch`."""
        if self._marks not in self._epoch_marks[-1:]:  # jm.epoch() may mark it, too
            self._epoch_marks.append(self._marks)

    @contextlib.contextmanager
    def other(self, name: str) -> Iterator[None]:
        """Measures other work than steps separately, which makes its cost more certain:

        with forecast.other("evaluation"):
            evaluate(model)

        An evaluation before the first step makes the cost of all of them known from the beginning."""
        window = begin(name)
        try:
            yield
        finally:
            window.end()
            self._open[2].append((name, window))
            self._other_steps.setdefault(name, []).append(self._marks - 1)

    def end(self) -> Optional[Energy]:
        """Ends the training, and returns its energy. total() then has the measured value instead of a prediction."""
        if self._whole is not None:
            whole, self._whole = self._whole, None
            whole.end()
            self._open[1].end()
            _remove_listener(self._listener)
            self.energy = whole.wait()
        return self.energy

    def total(self, wait: bool = False) -> Total:
        """The prediction from the steps so far. wait=True waits for the sensors to settle the last steps, at most 0.3 s
        for each block of steps."""
        if self.energy is not None:
            return _measured_total(self.energy, self._marks)
        self._collect(wait)
        steps = self._all_steps()
        blocks = [Block(first, count, _values(energy, other)) for first, count, energy, other in self._blocks]
        done = blocks[-1].end if blocks else 0
        if steps is None:
            return _unknown("the number of steps is known after the first epoch", done, None)
        if not blocks or self._setup is None:
            return _unknown("no step has ended and settled", done, steps)
        if len(blocks) < MIN_BLOCKS and done < steps:
            return _unknown("too few steps have settled: the first ones are slower than the others", done, steps)
        return _Prediction(self, blocks, max(steps, done)).total()

    def _mark_step(self) -> None:
        """Closes the block of steps if it is long enough, and opens the next one."""
        if self._whole is None:
            return
        now_s = time.monotonic()
        first, window, _ = self._open
        if self._marks == 0 or self._marks <= SINGLE_STEPS or now_s - self._opened_s >= self._block_s:
            following = begin("steps")
            window.end()
            self._pending.append((self._marks - first if self._marks else 0, *self._open))
            self._open, self._opened_s = [self._marks, following, []], now_s
            self._collect(wait=False)
        self._marks += 1

    def _forget_marks(self) -> None:
        """step() is called beside jm.step(): only one of them may count. The steps so far become part of the setup."""
        if self._marks:
            self._open[1].end()
            self._pending.append((0, *self._open))
            self._pending = collections.deque((0, *entry[1:]) for entry in self._pending)
            for _, _, energy, other in self._blocks:
                self._add_to_setup(energy, other)
            self._marks, self._epoch_marks, self._blocks = 0, [], []
            self._open = [0, begin("setup"), []]

    def _add_to_setup(self, energy: Energy, other: list) -> None:
        before = self._setup
        self._setup = (energy, other) if before is None else (_add(before[0], energy), [*before[1], *other])

    def _collect(self, wait: bool) -> None:
        """Moves ended blocks whose energy is final to the settled ones."""
        while self._pending:
            steps, first, window, other = self._pending[0]
            if not wait and not window.peek().settled:
                return
            self._pending.popleft()
            energy = window.wait()
            settled_other = [(name, work.wait()) for name, work in other]
            if steps == 0:
                self._add_to_setup(energy, settled_other)
            else:
                self._blocks.append((first, steps, energy, settled_other))
        if len(self._blocks) > MAX_BLOCKS:
            self._merge_blocks()

    def _merge_blocks(self) -> None:
        """Halves the number of blocks, and doubles the duration of further ones."""
        self._block_s *= 2
        head, rest = self._blocks[:SINGLE_STEPS], self._blocks[SINGLE_STEPS:]
        pairs = [_merge(*rest[index : index + 2]) for index in range(0, len(rest) - 1, 2)]
        self._blocks = [*head, *pairs, *(rest[-1:] if len(rest) % 2 else [])]

    def _all_steps(self) -> Optional[int]:
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

    def _kinds(self, blocks: list) -> list:
        """The recurring work: declared, measured separately, at the end of epochs, found as pauses."""
        declared = dict(self._every or {})
        if self._every is None and self._epoch_length() is not None:
            declared["epoch"] = self._epoch_length()
        kinds = []
        for name, period in sorted(declared.items(), key=lambda item: item[1]):
            if name not in self._other_steps:
                kinds.append(choose_phase(name, period, blocks))
        for name, positions in self._other_steps.items():
            period = declared.get(name) or _period(positions) or self._epoch_length()
            if period is not None:
                kinds.append(Kind(name, period, positions[-1] % period))
        if self._every is None:
            found = find_pauses(blocks, kinds)
            kinds += [found] if found is not None else []
        return kinds


def _listener_of(forecast: weakref.ref) -> Any:
    """Passes the marks of jm.step() and jm.epoch() to a Forecast until it is deleted."""

    def listen(mark: str) -> None:
        target = forecast()
        if target is None:
            _remove_listener(listen)
        elif mark == "epoch":
            target.epoch()
        elif not target._is_explicit:
            target._mark_step()

    return listen


def _remove_listener(listener: Any) -> None:
    with contextlib.suppress(ValueError):
        _marks.listeners.remove(listener)


def _period(positions: list) -> Optional[int]:
    """Period of work that was measured separately in these steps: their mean distance, or the number of steps until the
    only one. None if the only one was before the first step."""
    if len(positions) > 1:
        return max(1, round((positions[-1] - positions[0]) / (len(positions) - 1)))
    return positions[0] + 1 if positions[0] >= 0 else None


def _merge(one: tuple, other: tuple) -> tuple:
    return one[0], one[1] + other[1], _add(one[2], other[2]), [*one[3], *other[3]]


def _add(one: Energy, other: Energy) -> Energy:
    """The energy of two consecutive windows. Energies of different provenance are not added: the sum is unknown."""
    is_same = one.provenance == other.provenance and None not in (one.joules, other.joules)
    names = {domain.name: domain for domain in other.domains}
    domains = []
    for domain in one.domains if is_same else []:
        following = names.get(domain.name)
        if following is not None and None not in (domain.joules, following.joules):
            joules = domain.joules + following.joules  # type: ignore[operator]
            domains.append(type(domain)(**{**vars(domain), "joules": joules}))
    return Energy(
        joules=one.joules + other.joules if is_same else None,  # type: ignore[operator]
        uncertainty_j=max(one.uncertainty_j or 0, other.uncertainty_j or 0) if is_same else None,
        seconds=(one.seconds or 0) + (other.seconds or 0),
        watts=None,
        provenance=one.provenance if is_same else None,
        reason=one.reason or other.reason or ("" if is_same else "the provenance changed during the training"),
        settled=True,
        begin_ns=one.begin_ns,
        end_ns=other.end_ns,
        domains=domains,
    )


def _values(energy: Energy, other: list) -> dict:
    """The series of a block: "time", "energy" and one for each domain, without the work measured separately."""
    values: dict = {"time": energy.seconds, "energy": energy.joules}
    values.update({f"domain {domain.name}": domain.joules for domain in energy.domains})
    for _, work in other:
        separate = _values(work, [])
        values = {name: _minus(value, separate.get(name)) for name, value in values.items()}
    return values


def _minus(value: Optional[float], other: Optional[float]) -> Optional[float]:
    return None if value is None or other is None else max(0.0, value - other)


def _measured_total(energy: Energy, done: int) -> Total:
    """The result after end(): measured, no longer predicted."""
    domains = [
        DomainForecast(domain.name, domain.joules, domain.joules, domain.joules, domain.provenance or "", domain.counted)
        for domain in energy.domains
        if domain.joules is not None
    ]
    joules, seconds = energy.joules, energy.seconds
    uncertainty = None if not joules or energy.uncertainty_j is None else energy.uncertainty_j / joules
    return Total(
        joules, joules, joules, seconds, seconds, seconds, energy.provenance, energy.reason, uncertainty, joules, seconds,
        done, done, domains=domains,
    )  # fmt: skip


class _Prediction:
    """Computes one Total from the settled blocks of a Forecast."""

    def __init__(self, forecast: Forecast, blocks: list, steps: int) -> None:
        self._forecast, self._blocks, self._steps = forecast, blocks, steps
        self._done = blocks[-1].end
        self._kinds = forecast._kinds(blocks)
        self._warm_up = warm_up_blocks(blocks, self._kinds)
        assert forecast._setup is not None
        self._setup, setup_work = forecast._setup
        self._setup_values = _values(self._setup, setup_work)
        self._energies = [self._setup, *(entry[2] for entry in forecast._blocks)]
        self._work: dict = {}  # name -> energies of the work that was measured separately
        for work in [setup_work, *(entry[3] for entry in forecast._blocks)]:
            for name, energy in work:
                self._work.setdefault(name, []).append(energy)

    def total(self) -> Total:
        duration = self._outlook("time")
        reason = self._reason()
        energy = None if reason or duration is None else self._outlook("energy")
        spent_j = None if reason else sum(entry.joules for entry in self._energies)
        spent_s = sum(entry.seconds or 0 for entry in self._energies)
        last = self._energies[-1]
        result = energy or Outlook(*[None] * 6)  # type: ignore[arg-type]
        assert duration is not None  # durations are always known
        return Total(
            result.total, result.low, result.high, duration.total, duration.low, duration.high,
            last.provenance if energy else None, reason, self._sensor_uncertainty() if energy else None, spent_j, spent_s,
            self._done, self._steps, sum(block.steps for block in self._blocks[: self._warm_up]),
            [self._recurring(kind, duration, energy) for kind in self._kinds],
            [] if energy is None else self._domains(), self._notes(duration),
        )  # fmt: skip

    def _reason(self) -> str:
        """Why the energy is unknown."""
        unknown = next((entry for entry in self._energies if entry.joules is None), None)
        if unknown is not None:
            return unknown.reason
        if len({entry.provenance for entry in self._energies}) > 1:
            return "a part of the energy is measured and a part estimated: they are not added"
        return ""

    def _outlook(self, series: str) -> Optional[Outlook]:
        """The total of a series; None if a value of it is unknown."""
        work = {name: [_values(energy, []).get(series) for energy in entries] for name, entries in self._work.items()}
        base = self._setup_values.get(series)
        known = [block.values.get(series) for block in self._blocks]
        if base is None or None in known or any(None in entries for entries in work.values()):
            return None
        left = {kind.name: kind.occurrences(self._done, self._steps) for kind in self._kinds}
        separate = {name: cost_of(entries, len(entries), left.get(name, 0)) for name, entries in work.items()}
        base += sum(value for entries in work.values() for value in entries if value is not None)
        outlook = forecast_series(series, self._blocks, self._kinds, self._warm_up, self._steps, base, separate)
        is_declared = self._forecast._every is not None
        return add_unseen(outlook, self._kinds, self._done, self._steps, is_declared, self._forecast._evaluation_steps)

    def _sensor_uncertainty(self) -> Optional[float]:
        """Relative uncertainty of the longest window: those of short windows contain the period of the sensor."""
        longest = max(self._energies, key=lambda entry: entry.seconds or 0)
        return None if longest.uncertainty_j is None or not longest.joules else longest.uncertainty_j / longest.joules

    def _recurring(self, kind: Kind, duration: Outlook, energy: Optional[Outlook]) -> RecurringWork:
        time_cost = duration.costs.get(kind.name)
        energy_cost = None if energy is None else energy.costs.get(kind.name)
        return RecurringWork(
            kind.name, kind.period, 0 if time_cost is None else time_cost.seen,
            kind.occurrences(self._done, self._steps), None if energy_cost is None else energy_cost.value,
            None if time_cost is None else time_cost.value,
        )  # fmt: skip

    def _domains(self) -> list:
        domains = []
        for domain in self._energies[-1].domains:
            outlook = self._outlook(f"domain {domain.name}")
            if outlook is not None and domain.provenance is not None:
                bounds = outlook.total, outlook.low, outlook.high
                domains.append(DomainForecast(domain.name, *bounds, domain.provenance, domain.counted))
        return domains

    def _notes(self, duration: Outlook) -> list:
        notes = []
        unseen = [kind for kind in self._kinds if kind.name not in duration.costs]
        for kind in unseen:
            if self._forecast._evaluation_steps is not None and kind.name == evaluation_kind(self._kinds):
                batches = self._forecast._evaluation_steps
                notes.append(
                    f"no {kind.name} has ended yet: each of its {batches} batches is assumed to cost a third of a step"
                )
            else:
                notes.append(f"no {kind.name} has ended yet: the total does not contain it, the upper bound does")
        if not self._kinds and self._forecast._every is None:
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
    """Predicts the energy and the time of a whole training from its first steps, with 90 % intervals that narrow as it
    runs. Call it before the loop.

        forecast = jm.predict_total(epochs=10, steps_per_epoch=loader, evaluation_steps=validation_loader)
        for epoch in range(10):
            for batch in loader:
                forecast.step()                  # unnecessary if the loop calls jm.step()
                train(batch)
            print(forecast.total())
            evaluate(model)

    - `steps`: number of steps of the training; alternatively `epochs` and `steps_per_epoch`
    - `steps_per_epoch`: number of steps of an epoch, or the loader; by default the distance of jm.epoch() marks
    - `every`: period of other work, in steps: {"evaluation": 500, "checkpoint": 2000}; {} if there is none. By default
      work at the end of an epoch and pauses at equal distances are found
    - `evaluation_steps`: number of batches of an evaluation, or its loader, for predictions before the first one

    The first, slower steps are part of the total, but not of the rate of the others. Work that has not occurred yet
    widens the interval upwards, and `notes` of the result names it.
    """
    if steps is None and epochs is None:
        raise TypeError("predict_total needs steps=, or epochs= with steps_per_epoch=")
    per_epoch, batches = _count(steps_per_epoch, "steps_per_epoch"), _count(evaluation_steps, "evaluation_steps")
    if steps is None and per_epoch is not None:
        steps = epochs * per_epoch  # type: ignore[operator]
    for name, value in {"steps": steps, "epochs": epochs, "steps_per_epoch": per_epoch, **(every or {})}.items():
        if value is not None and (int(value) != value or value < 1):
            raise ValueError(f"{name} must be a positive integer, not {value!r}")
    return Forecast(steps, epochs, per_epoch, every, batches)


def _count(value: Any, name: str) -> Optional[int]:
    """A number, or the length of a loader."""
    if value is None or isinstance(value, int):
        return value
    try:
        return len(value)
    except TypeError:
        raise TypeError(f"{name} must be a number or have a length, not a {type(value).__name__}") from None
