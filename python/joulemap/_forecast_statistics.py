# SPDX-License-Identifier: Apache-2.0
"""The total of a training from the values of its first steps: pure functions over plain data, without sensors. One
series is the time in s, the energy in J, or the energy of one domain in J.

The model of a series: setup + warm-up + steps x rate + sum over recurring work of occurrences x cost. The rate is a
mean, so that random pauses are part of it. Its interval comes from means over batches of consecutive blocks, which
contain the autocorrelation of the noise.
"""

from __future__ import annotations

import math
import statistics
from typing import NamedTuple, Optional, Sequence

from ._validate_statistics import t_quantile_95

# Outliers in time that can be recurring work: excess over the median in robust standard deviations, and in steps.
MIN_PAUSE_DEVIATIONS = 8.0
MIN_PAUSE_STEPS = 2.0
# Leading blocks whose steps are slower than the median by this many robust standard deviations are the warm-up.
MIN_WARM_UP_DEVIATIONS = 3.0
MIN_WARM_UP_SLOWDOWN = 0.05
MAX_BATCHES = 10
BLOCKS_PER_BATCH = 3
# Half width, as a fraction of the remaining work, of what no part of this training shows: temperature, other load.
MIN_HALF_WIDTH_SHARE = 0.01
# Weight of the difference between both halves of the steps in the half width: noise slower than the batches.
SLOW_NOISE_WEIGHT = 1.0
MAX_AUTOCORRELATION = 0.8
# Half width of the cost of work that was seen once, as a fraction.
ONE_OCCURRENCE_HALF_WIDTH_SHARE = 0.3
# Work that was not seen yet can cost up to this fraction of the steps between two occurrences.
UNSEEN_WORK_COST_SHARE = 0.25
# Undeclared work is no longer expected after this fraction of the steps.
UNDECLARED_WORK_SHARE = 0.25
# A batch of evaluation in training steps: forward alone, against forward and backward.
EVALUATION_BATCH_COST, EVALUATION_BATCH_COST_LOW, EVALUATION_BATCH_COST_HIGH = 1 / 3, 0.15, 0.7
# The rate is between these multiples of the only block.
SINGLE_BLOCK_RATE_LOW, SINGLE_BLOCK_RATE_HIGH = 0.5, 2.0
# A drift is significant from this t statistic on, and relevant from this relative change on.
MIN_DRIFT_T_VALUE, MIN_RELATIVE_DRIFT = 3.0, 0.002


class StepBlock(NamedTuple):
    """Consecutive steps, each from its mark to the next one, without work that was measured separately."""

    first_step: int  # index of the first step
    steps: int
    values: dict  # name of a series -> value; None if unknown

    @property
    def end(self) -> int:
        return self.first_step + self.steps


class RecurringWorkKind(NamedTuple):
    """Recurring work: it occurs in the steps `phase`, `phase + period`, ..."""

    name: str
    period: int
    phase: int

    def count_occurrences(self, first: int, end: int) -> int:
        """How often it occurs in the steps from `first` up to `end`."""
        return self._count_occurrences_until(end) - self._count_occurrences_until(first)

    def _count_occurrences_until(self, end: int) -> int:
        return max(0, math.ceil((end - self.phase) / self.period))


class OccurrenceCost(NamedTuple):
    """Cost of one occurrence in one series."""

    value: float
    half_width: float  # of the mean over the remaining occurrences, at 90 %
    occurrence_count: int


class OccurrenceMoments:
    """Count, sum and spread of the costs of occurrences, without the single costs (Welford)."""

    def __init__(self, count: int = 0, total: Optional[float] = 0.0) -> None:
        self.count = count
        self.total = total  # None if a cost is unknown
        self._mean = self._squared_deviations = 0.0

    def add(self, value: Optional[float]) -> None:
        self.count += 1
        if value is None or self.total is None:
            self.total = None
            return
        self.total += value
        change = value - self._mean
        self._mean += change / self.count
        self._squared_deviations += change * (value - self._mean)

    def cost(self, left: int) -> OccurrenceCost:
        """The mean cost, with its half width for `left` more occurrences."""
        deviation = math.sqrt(self._squared_deviations / (self.count - 1)) if self.count > 1 else None
        return _make_occurrence_cost(self._mean, deviation, self.count, self.count, left)


class SeriesForecast(NamedTuple):
    """A series at the end of the training, with its 90 % interval."""

    total: float
    low: float
    high: float
    rate: float  # per step
    costs: dict  # name of recurring work -> OccurrenceCost
    has_drift: bool


def robust_standard_deviation(values: Sequence) -> float:
    """Standard deviation estimated from the median absolute deviation."""
    centre = statistics.median(values)
    return 1.4826 * statistics.median(abs(value - centre) for value in values)


def count_warm_up_blocks(blocks: Sequence, kinds: Sequence) -> int:
    """Number of leading blocks that are slower than the rest; at least 1, because the first step initializes, and at
    most half of the blocks."""
    if len(blocks) < 3:
        return min(1, len(blocks) - 1)
    times_s = [_seconds_per_step(block) for block in blocks]
    second_half_s = times_s[len(times_s) // 2 :]
    centre_s = statistics.median(second_half_s)
    limit_s = centre_s + max(
        MIN_WARM_UP_DEVIATIONS * robust_standard_deviation(second_half_s), MIN_WARM_UP_SLOWDOWN * centre_s
    )
    count = 1
    while count < len(blocks) // 2 and (times_s[count] > limit_s or _has_recurring_work(blocks[count], kinds)):
        count += 1
    # A block with recurring work is slow for another reason: it does not end the warm-up, and is not part of it.
    while count > 1 and _has_recurring_work(blocks[count - 1], kinds):
        count -= 1
    return count


def _seconds_per_step(block: StepBlock) -> float:
    return block.values["time"] / block.steps


def _has_recurring_work(block: StepBlock, kinds: Sequence) -> bool:
    return any(kind.count_occurrences(block.first_step, block.end) for kind in kinds)


def choose_period_offset(name: str, period: int, blocks: Sequence) -> RecurringWorkKind:
    """Recurring work of a known period: after the last step of each period, or around its first one, whichever has the
    slower blocks. Without any of these steps, after the last one."""
    candidates = [RecurringWorkKind(name, period, phase % period) for phase in (-1, 0, -2, 1)]
    if not blocks:
        return candidates[0]
    step_s = statistics.median(map(_seconds_per_step, blocks))

    def mean_excess_s(kind: RecurringWorkKind) -> float:
        found = [block for block in blocks[1:] if _has_recurring_work(block, [kind])]
        return statistics.fmean(block.values["time"] - block.steps * step_s for block in found) if found else 0.0

    best = max(candidates, key=mean_excess_s)
    return best if mean_excess_s(best) > MIN_PAUSE_STEPS * step_s else candidates[0]


def find_recurring_pauses(blocks: Sequence, kinds: Sequence) -> Optional[RecurringWorkKind]:
    """Undeclared recurring work: long pauses at equal distances, of which the first is as far from the beginning."""
    plain = [block for block in blocks[1:] if not _has_recurring_work(block, kinds)]
    if len(plain) < 4:
        return None
    times_s = list(map(_seconds_per_step, plain))
    centre_s, deviation_s = statistics.median(times_s), robust_standard_deviation(times_s)
    limit_s = max(MIN_PAUSE_DEVIATIONS * deviation_s, MIN_PAUSE_STEPS * centre_s)
    pauses = [block for block in plain if block.values["time"] - block.steps * centre_s > limit_s]
    if len(pauses) < 2:
        return None
    tolerance = max(block.steps for block in pauses)
    distances = [after.first_step - before.first_step for before, after in zip(pauses, pauses[1:])]
    period = round((pauses[-1].end - pauses[0].end) / len(distances))
    is_regular = period > 2 * tolerance and all(abs(distance - period) <= tolerance for distance in distances)
    has_regular_start = min(abs(pauses[0].end - period), pauses[0].first_step) <= tolerance
    if not (is_regular and has_regular_start):
        return None
    return RecurringWorkKind("pause", period, (pauses[0].end - 1) % period)


def forecast_series(
    series: str, blocks: Sequence, kinds: Sequence, warm_up: int, steps: int, base: float, separate: dict
) -> SeriesForecast:
    """The total of one series over `steps` steps. `base`: the value before the first block. `separate`: OccurrenceCost
    of work that was measured separately, by name; its occurrences so far are part of `base`."""
    end = blocks[-1].end if blocks else 0
    remaining = max(0, steps - end)
    steady = blocks[warm_up:] or blocks[-1:]
    costs = _fit_costs(series, steady, [kind for kind in kinds if kind.name not in separate], end, steps)
    plain = [block for block in steady if not _expected_block_cost(block, kinds, costs)]
    plain = plain if len(plain) > 1 else list(steady)
    points = [(block.steps, block.values[series] - _expected_block_cost(block, kinds, costs)) for block in plain]
    rate, low_rate, high_rate, has_drift = _estimate_rate(points, remaining)
    total = base + sum(block.values[series] for block in blocks) + remaining * rate
    below, above = (remaining * (rate - low_rate)) ** 2, (remaining * (high_rate - rate)) ** 2
    for kind in kinds:
        cost = separate.get(kind.name) or costs.get(kind.name)
        if cost is not None:
            left = kind.count_occurrences(end, steps)
            total += left * cost.value
            below += (left * cost.half_width) ** 2
            above += (left * cost.half_width) ** 2
    low, high = total - math.sqrt(below), total + math.sqrt(above)
    return SeriesForecast(total, max(base, low), high, rate, {**costs, **separate}, has_drift)


def _expected_block_cost(block: StepBlock, kinds: Sequence, costs: dict) -> float:
    return sum(
        kind.count_occurrences(block.first_step, block.end) * costs[kind.name].value
        for kind in kinds
        if kind.name in costs
    )


def _fit_costs(series: str, steady: Sequence, kinds: Sequence, end: int, steps: int) -> dict:
    """Cost of an occurrence of each kind that was seen: least squares over the blocks in which it occurs, never below
    0. Kinds that only occur together share their cost in equal parts."""
    seen = [kind for kind in kinds if any(kind.count_occurrences(block.first_step, block.end) for block in steady)]
    if not seen:
        return {}
    plain = [block for block in steady if not _has_recurring_work(block, seen)]
    rows = [
        (block.steps, block.values[series], [kind.count_occurrences(block.first_step, block.end) for kind in seen])
        for block in steady
        if _has_recurring_work(block, seen)
    ]
    plain_steps, plain_value = sum(block.steps for block in plain), sum(block.values[series] for block in plain)
    cost = [0.0] * len(seen)
    for _ in range(40):
        rest = sum(value - _weighted_sum(counts, cost) for _, value, counts in rows) + plain_value
        rate = plain_value / plain_steps if plain_steps else rest / sum(block.steps for block in steady)
        previous = list(cost)
        for index in range(len(seen)):
            weights = sum(counts[index] ** 2 for _, _, counts in rows)
            residual = sum(
                counts[index]
                * (value - count * rate - _weighted_sum(counts, previous) + counts[index] * previous[index])
                for count, value, counts in rows
            )
            cost[index] = max(0.0, (previous[index] + residual / weights) / 2)
    return {
        kind.name: _make_fitted_occurrence_cost(index, cost, rows, rate, kind.count_occurrences(end, steps))
        for index, kind in enumerate(seen)
    }


def _make_fitted_occurrence_cost(index: int, cost: list, rows: list, rate: float, left: int) -> OccurrenceCost:
    """The cost of one kind with the spread of its occurrences: the half width of their mean over those to come."""
    counts = [row for row in rows if row[2][index]]
    seen = sum(row[2][index] for row in counts)
    single = [
        (value - count * rate - _weighted_sum(occurrence_counts, cost)) / occurrence_counts[index] + cost[index]
        for count, value, occurrence_counts in counts
    ]
    return mean_occurrence_cost(single, seen, left)._replace(value=cost[index])


def mean_occurrence_cost(values: Sequence, seen: int, left: int) -> OccurrenceCost:
    """The mean cost of occurrences, with its half width for `left` more of them."""
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return _make_occurrence_cost(statistics.fmean(values), deviation, len(values), seen, left)


def _make_occurrence_cost(mean: float, deviation: Optional[float], count: int, seen: int, left: int) -> OccurrenceCost:
    if deviation is None:
        return OccurrenceCost(mean, ONE_OCCURRENCE_HALF_WIDTH_SHARE * abs(mean), seen)
    half_width = t_quantile_95(count - 1) * deviation * math.sqrt(1 / count + 1 / max(1, left))
    return OccurrenceCost(mean, half_width, seen)


def _weighted_sum(counts: Sequence, cost: Sequence) -> float:
    return sum(count * value for count, value in zip(counts, cost))


def _estimate_rate(points: Sequence, remaining: int) -> tuple:
    """Value per step over the remaining steps, its 90 % interval, and whether it drifts: (rate, low, high, drifts).
    `points`: steps and value of each block."""
    steps = sum(count for count, _ in points)
    mean = sum(value for _, value in points) / steps
    batches = _join_blocks_to_batches(points)
    if len(batches) < 2:
        return mean, SINGLE_BLOCK_RATE_LOW * mean, SINGLE_BLOCK_RATE_HIGH * mean, False
    rates = [value / count for count, value in batches]
    batch_steps = steps / len(batches)
    deviation = statistics.stdev(rates) * _autocorrelation_factor(rates)
    half = (
        t_quantile_95(len(rates) - 1)
        * deviation
        * math.sqrt(1 / len(rates) + batch_steps / max(batch_steps, remaining))
    )
    half = math.hypot(half, MIN_HALF_WIDTH_SHARE * mean, SLOW_NOISE_WEIGHT * _difference_between_half_rates(batches))
    drift = _estimate_drift(batches)
    if drift is None:
        return mean, max(0.0, mean - half), mean + half, False
    later = batches[len(batches) // 2 :]
    level = sum(value for _, value in later) / sum(count for count, _ in later)
    low, high = level - half + min(0.0, drift), level + half + max(0.0, drift)
    return level, max(0.0, low), high, True


def _difference_between_half_rates(batches: Sequence) -> float:
    """Difference between the rates of the later and the earlier half: noise that is slower than the batches."""
    half = len(batches) // 2
    earlier, later = (
        sum(value for _, value in part) / sum(count for count, _ in part) for part in (batches[:half], batches[half:])
    )
    return later - earlier


def _join_blocks_to_batches(points: Sequence) -> list:
    """Joins consecutive blocks to at most MAX_BATCHES batches of about equal numbers of steps: (steps, value)."""
    count = max(2, min(MAX_BATCHES, len(points) // BLOCKS_PER_BATCH))
    steps = sum(block_steps for block_steps, _ in points)
    sums: dict = {}  # index of the batch -> [steps, value]
    before = 0
    for block_steps, value in points:
        index = int(count * (before + block_steps / 2) / steps)
        before += block_steps
        batch = sums.setdefault(index, [0, 0.0])
        batch[0] += block_steps
        batch[1] += value
    return list(sums.values())


def _autocorrelation_factor(rates: Sequence) -> float:
    """Factor of the standard error for the autocorrelation of batches at lag 1, as in a first-order process."""
    if len(rates) < 4:
        return 1.0
    centre = statistics.fmean(rates)
    squares = sum((rate - centre) ** 2 for rate in rates)
    if squares == 0:
        return 1.0
    lag = sum((one - centre) * (other - centre) for one, other in zip(rates, rates[1:])) / squares
    lag += (1 + 3 * lag) / len(rates)  # bias of short series (Kendall 1954)
    correlation = min(max(lag, 0.0), MAX_AUTOCORRELATION)
    return math.sqrt((1 + correlation) / (1 - correlation))


def _estimate_drift(batches: Sequence) -> Optional[float]:
    """Change of the rate over the batches, by linear regression; None if it is not significant or there are fewer than
    6 batches."""
    rates = [value / count for count, value in batches]
    size = len(rates)
    if size < 6:
        return None
    centre, mean = (size - 1) / 2, statistics.fmean(rates)
    spread = sum((index - centre) ** 2 for index in range(size))
    slope = sum((index - centre) * rate for index, rate in enumerate(rates)) / spread
    residuals = [rate - mean - slope * (index - centre) for index, rate in enumerate(rates)]
    error = math.sqrt(sum(residual**2 for residual in residuals) / (size - 2) / spread)
    change = slope * (size - 1)
    if abs(change) < MIN_RELATIVE_DRIFT * abs(mean) or (error > 0 and abs(slope) / error < MIN_DRIFT_T_VALUE):
        return None
    return change


def add_unseen_work(
    series_forecast: SeriesForecast,
    kinds: Sequence,
    end: int,
    steps: int,
    is_declared: bool,
    evaluation_steps: Optional[int],
) -> SeriesForecast:
    """Widens the interval upwards by recurring work that has not occurred yet. An evaluation of a known number of
    batches is also part of the total. `is_declared`: the program declared all recurring work."""
    total, low, high = series_forecast.total, series_forecast.low, series_forecast.high
    for kind in kinds:
        left = kind.count_occurrences(end, steps)
        if kind.name in series_forecast.costs or left == 0:
            continue
        if evaluation_steps is not None and kind.name == evaluation_kind_name(kinds):
            work = left * evaluation_steps * series_forecast.rate
            total, low, high = (
                total + EVALUATION_BATCH_COST * work,
                low + EVALUATION_BATCH_COST_LOW * work,
                high + EVALUATION_BATCH_COST_HIGH * work,
            )
        else:
            high += left * UNSEEN_WORK_COST_SHARE * min(kind.period, steps) * series_forecast.rate
    if not kinds and not is_declared:
        until = UNDECLARED_WORK_SHARE * steps
        high += max(0.0, 1 - end / until) * UNSEEN_WORK_COST_SHARE * max(0, steps - end) * series_forecast.rate
    return series_forecast._replace(total=total, low=low, high=high)


def evaluation_kind_name(kinds: Sequence) -> Optional[str]:
    """The recurring work that contains the evaluation: declared as "evaluation", otherwise the end of an epoch."""
    names = [kind.name for kind in kinds]
    return next((name for name in ("evaluation", "epoch") if name in names), None)
