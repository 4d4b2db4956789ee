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

    def _count_occurrences_until(self, end_step: int) -> int:
        return max(0, math.ceil((end_step - self.phase) / self.period))


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
        deviation_from_mean = value - self._mean
        self._mean += deviation_from_mean / self.count
        self._squared_deviations += deviation_from_mean * (value - self._mean)

    def cost(self, left: int) -> OccurrenceCost:
        """The mean cost, with its half width for `left` more occurrences."""
        standard_deviation = math.sqrt(self._squared_deviations / (self.count - 1)) if self.count > 1 else None
        return _make_occurrence_cost(self._mean, standard_deviation, self.count, self.count, left)


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
    median_value = statistics.median(values)
    return 1.4826 * statistics.median(abs(value - median_value) for value in values)


def count_warm_up_blocks(blocks: Sequence, kinds: Sequence) -> int:
    """Number of leading blocks that are slower than the rest; at least 1, because the first step initializes, and at
    most half of the blocks."""
    if len(blocks) < 3:
        return min(1, len(blocks) - 1)
    step_times_s = [_seconds_per_step(block) for block in blocks]
    later_times_s = step_times_s[len(step_times_s) // 2 :]
    median_step_s = statistics.median(later_times_s)
    max_steady_step_s = median_step_s + max(
        MIN_WARM_UP_DEVIATIONS * robust_standard_deviation(later_times_s), MIN_WARM_UP_SLOWDOWN * median_step_s
    )
    warm_up_count = 1
    while warm_up_count < len(blocks) // 2 and (
        step_times_s[warm_up_count] > max_steady_step_s or _has_recurring_work(blocks[warm_up_count], kinds)
    ):
        warm_up_count += 1
    # A block with recurring work is slow for another reason: it does not end the warm-up, and is not part of it.
    while warm_up_count > 1 and _has_recurring_work(blocks[warm_up_count - 1], kinds):
        warm_up_count -= 1
    return warm_up_count


def _seconds_per_step(block: StepBlock) -> float:
    return block.values["time"] / block.steps


def _has_recurring_work(block: StepBlock, kinds: Sequence) -> bool:
    return any(kind.count_occurrences(block.first_step, block.end) for kind in kinds)


def choose_period_offset(name: str, period: int, blocks: Sequence) -> RecurringWorkKind:
    """Recurring work of a known period: after the last step of each period, or around its first one, whichever has the
    slower blocks. Without any of these steps, after the last one."""
    candidate_kinds = [RecurringWorkKind(name, period, phase % period) for phase in (-1, 0, -2, 1)]
    if not blocks:
        return candidate_kinds[0]
    median_step_s = statistics.median(map(_seconds_per_step, blocks))

    def mean_excess_s(kind: RecurringWorkKind) -> float:
        blocks_with_work = [block for block in blocks[1:] if _has_recurring_work(block, [kind])]
        return (
            statistics.fmean(block.values["time"] - block.steps * median_step_s for block in blocks_with_work)
            if blocks_with_work
            else 0.0
        )

    slowest_kind = max(candidate_kinds, key=mean_excess_s)
    return slowest_kind if mean_excess_s(slowest_kind) > MIN_PAUSE_STEPS * median_step_s else candidate_kinds[0]


def find_recurring_pauses(blocks: Sequence, kinds: Sequence) -> Optional[RecurringWorkKind]:
    """Undeclared recurring work: long pauses at equal distances, of which the first is as far from the beginning."""
    blocks_without_work = [block for block in blocks[1:] if not _has_recurring_work(block, kinds)]
    if len(blocks_without_work) < 4:
        return None
    step_times_s = list(map(_seconds_per_step, blocks_without_work))
    median_step_s, step_deviation_s = statistics.median(step_times_s), robust_standard_deviation(step_times_s)
    min_pause_s = max(MIN_PAUSE_DEVIATIONS * step_deviation_s, MIN_PAUSE_STEPS * median_step_s)
    pause_blocks = [
        block for block in blocks_without_work if block.values["time"] - block.steps * median_step_s > min_pause_s
    ]
    if len(pause_blocks) < 2:
        return None
    tolerance_steps = max(block.steps for block in pause_blocks)
    pause_distances = [
        later_pause.first_step - earlier_pause.first_step
        for earlier_pause, later_pause in zip(pause_blocks, pause_blocks[1:])
    ]
    period = round((pause_blocks[-1].end - pause_blocks[0].end) / len(pause_distances))
    is_regular = period > 2 * tolerance_steps and all(
        abs(distance - period) <= tolerance_steps for distance in pause_distances
    )
    has_regular_start = min(abs(pause_blocks[0].end - period), pause_blocks[0].first_step) <= tolerance_steps
    if not (is_regular and has_regular_start):
        return None
    return RecurringWorkKind("pause", period, (pause_blocks[0].end - 1) % period)


def forecast_series(
    series: str, blocks: Sequence, kinds: Sequence, warm_up: int, steps: int, base: float, separate: dict
) -> SeriesForecast:
    """The total of one series over `steps` steps. `base`: the value before the first block. `separate`: OccurrenceCost
    of work that was measured separately, by name; its occurrences so far are part of `base`."""
    done_steps = blocks[-1].end if blocks else 0
    remaining_steps = max(0, steps - done_steps)
    steady_blocks = blocks[warm_up:] or blocks[-1:]
    costs = _fit_costs(series, steady_blocks, [kind for kind in kinds if kind.name not in separate], done_steps, steps)
    blocks_without_work = [block for block in steady_blocks if not _expected_block_cost(block, kinds, costs)]
    blocks_without_work = blocks_without_work if len(blocks_without_work) > 1 else list(steady_blocks)
    steps_and_values = [
        (block.steps, block.values[series] - _expected_block_cost(block, kinds, costs)) for block in blocks_without_work
    ]
    rate, low_rate, high_rate, has_drift = _estimate_rate(steps_and_values, remaining_steps)
    total_value = base + sum(block.values[series] for block in blocks) + remaining_steps * rate
    squared_width_below, squared_width_above = (
        (remaining_steps * (rate - low_rate)) ** 2,
        (remaining_steps * (high_rate - rate)) ** 2,
    )
    for kind in kinds:
        cost = separate.get(kind.name) or costs.get(kind.name)
        if cost is not None:
            remaining_occurrences = kind.count_occurrences(done_steps, steps)
            total_value += remaining_occurrences * cost.value
            squared_width_below += (remaining_occurrences * cost.half_width) ** 2
            squared_width_above += (remaining_occurrences * cost.half_width) ** 2
    low, high = total_value - math.sqrt(squared_width_below), total_value + math.sqrt(squared_width_above)
    return SeriesForecast(total_value, max(base, low), high, rate, {**costs, **separate}, has_drift)


def _expected_block_cost(block: StepBlock, kinds: Sequence, costs: dict) -> float:
    return sum(
        kind.count_occurrences(block.first_step, block.end) * costs[kind.name].value
        for kind in kinds
        if kind.name in costs
    )


def _fit_costs(series_name: str, steady_blocks: Sequence, kinds: Sequence, done_steps: int, total_steps: int) -> dict:
    """Cost of an occurrence of each kind that was seen: least squares over the blocks in which it occurs, never below
    0. Kinds that only occur together share their cost in equal parts."""
    seen_kinds = [
        kind for kind in kinds if any(kind.count_occurrences(block.first_step, block.end) for block in steady_blocks)
    ]
    if not seen_kinds:
        return {}
    blocks_without_work = [block for block in steady_blocks if not _has_recurring_work(block, seen_kinds)]
    rows = [
        (
            block.steps,
            block.values[series_name],
            [kind.count_occurrences(block.first_step, block.end) for kind in seen_kinds],
        )
        for block in steady_blocks
        if _has_recurring_work(block, seen_kinds)
    ]
    steps_without_work, value_without_work = (
        sum(block.steps for block in blocks_without_work),
        sum(block.values[series_name] for block in blocks_without_work),
    )
    fitted_costs = [0.0] * len(seen_kinds)
    for _ in range(40):
        value_of_steps = (
            sum(value - _weighted_sum(occurrence_counts, fitted_costs) for _, value, occurrence_counts in rows)
            + value_without_work
        )
        rate = (
            value_without_work / steps_without_work
            if steps_without_work
            else value_of_steps / sum(block.steps for block in steady_blocks)
        )
        previous_costs = list(fitted_costs)
        for kind_index in range(len(seen_kinds)):
            squared_counts = sum(occurrence_counts[kind_index] ** 2 for _, _, occurrence_counts in rows)
            weighted_residual = sum(
                occurrence_counts[kind_index]
                * (
                    value
                    - step_count * rate
                    - _weighted_sum(occurrence_counts, previous_costs)
                    + occurrence_counts[kind_index] * previous_costs[kind_index]
                )
                for step_count, value, occurrence_counts in rows
            )
            fitted_costs[kind_index] = max(0.0, (previous_costs[kind_index] + weighted_residual / squared_counts) / 2)
    return {
        kind.name: _make_fitted_occurrence_cost(
            kind_index, fitted_costs, rows, rate, kind.count_occurrences(done_steps, total_steps)
        )
        for kind_index, kind in enumerate(seen_kinds)
    }


def _make_fitted_occurrence_cost(
    kind_index: int, fitted_costs: list, rows: list, rate: float, remaining_occurrences: int
) -> OccurrenceCost:
    """The cost of one kind with the spread of its occurrences: the half width of their mean over those to come."""
    rows_with_kind = [row for row in rows if row[2][kind_index]]
    occurrence_count = sum(row[2][kind_index] for row in rows_with_kind)
    occurrence_values = [
        (value - step_count * rate - _weighted_sum(occurrence_counts, fitted_costs)) / occurrence_counts[kind_index]
        + fitted_costs[kind_index]
        for step_count, value, occurrence_counts in rows_with_kind
    ]
    return mean_occurrence_cost(occurrence_values, occurrence_count, remaining_occurrences)._replace(
        value=fitted_costs[kind_index]
    )


def mean_occurrence_cost(values: Sequence, seen: int, left: int) -> OccurrenceCost:
    """The mean cost of occurrences, with its half width for `left` more of them."""
    standard_deviation = statistics.stdev(values) if len(values) > 1 else None
    return _make_occurrence_cost(statistics.fmean(values), standard_deviation, len(values), seen, left)


def _make_occurrence_cost(
    mean_cost: float,
    standard_deviation: Optional[float],
    sample_count: int,
    occurrence_count: int,
    remaining_occurrences: int,
) -> OccurrenceCost:
    if standard_deviation is None:
        return OccurrenceCost(mean_cost, ONE_OCCURRENCE_HALF_WIDTH_SHARE * abs(mean_cost), occurrence_count)
    half_width = (
        t_quantile_95(sample_count - 1)
        * standard_deviation
        * math.sqrt(1 / sample_count + 1 / max(1, remaining_occurrences))
    )
    return OccurrenceCost(mean_cost, half_width, occurrence_count)


def _weighted_sum(counts: Sequence, weights: Sequence) -> float:
    return sum(count * weight for count, weight in zip(counts, weights))


def _estimate_rate(steps_and_values: Sequence, remaining_steps: int) -> tuple:
    """Value per step over the remaining steps, its 90 % interval, and whether it drifts: (rate, low, high, drifts).
    `steps_and_values`: steps and value of each block."""
    total_steps = sum(step_count for step_count, _ in steps_and_values)
    mean_rate = sum(value for _, value in steps_and_values) / total_steps
    batches = _join_blocks_to_batches(steps_and_values)
    if len(batches) < 2:
        return mean_rate, SINGLE_BLOCK_RATE_LOW * mean_rate, SINGLE_BLOCK_RATE_HIGH * mean_rate, False
    batch_rates = [value / step_count for step_count, value in batches]
    steps_per_batch = total_steps / len(batches)
    rate_deviation = statistics.stdev(batch_rates) * _autocorrelation_factor(batch_rates)
    half_width = (
        t_quantile_95(len(batch_rates) - 1)
        * rate_deviation
        * math.sqrt(1 / len(batch_rates) + steps_per_batch / max(steps_per_batch, remaining_steps))
    )
    half_width = math.hypot(
        half_width, MIN_HALF_WIDTH_SHARE * mean_rate, SLOW_NOISE_WEIGHT * _difference_between_half_rates(batches)
    )
    drift = _estimate_drift(batches)
    if drift is None:
        return mean_rate, max(0.0, mean_rate - half_width), mean_rate + half_width, False
    later_batches = batches[len(batches) // 2 :]
    later_rate = sum(value for _, value in later_batches) / sum(step_count for step_count, _ in later_batches)
    low, high = later_rate - half_width + min(0.0, drift), later_rate + half_width + max(0.0, drift)
    return later_rate, max(0.0, low), high, True


def _difference_between_half_rates(batches: Sequence) -> float:
    """Difference between the rates of the later and the earlier half: noise that is slower than the batches."""
    half_count = len(batches) // 2
    earlier_rate, later_rate = (
        sum(value for _, value in half_batches) / sum(step_count for step_count, _ in half_batches)
        for half_batches in (batches[:half_count], batches[half_count:])
    )
    return later_rate - earlier_rate


def _join_blocks_to_batches(steps_and_values: Sequence) -> list:
    """Joins consecutive blocks to at most MAX_BATCHES batches of about equal numbers of steps: (steps, value)."""
    batch_count = max(2, min(MAX_BATCHES, len(steps_and_values) // BLOCKS_PER_BATCH))
    total_steps = sum(block_steps for block_steps, _ in steps_and_values)
    batch_sums: dict = {}  # index of the batch -> [steps, value]
    steps_before = 0
    for block_steps, value in steps_and_values:
        batch_index = int(batch_count * (steps_before + block_steps / 2) / total_steps)
        steps_before += block_steps
        batch = batch_sums.setdefault(batch_index, [0, 0.0])
        batch[0] += block_steps
        batch[1] += value
    return list(batch_sums.values())


def _autocorrelation_factor(rates: Sequence) -> float:
    """Factor of the standard error for the autocorrelation of batches at lag 1, as in a first-order process."""
    if len(rates) < 4:
        return 1.0
    mean_rate = statistics.fmean(rates)
    squared_deviations = sum((rate - mean_rate) ** 2 for rate in rates)
    if squared_deviations == 0:
        return 1.0
    lag_1_autocorrelation = (
        sum((earlier_rate - mean_rate) * (later_rate - mean_rate) for earlier_rate, later_rate in zip(rates, rates[1:]))
        / squared_deviations
    )
    lag_1_autocorrelation += (1 + 3 * lag_1_autocorrelation) / len(rates)  # bias of short series (Kendall 1954)
    clamped_autocorrelation = min(max(lag_1_autocorrelation, 0.0), MAX_AUTOCORRELATION)
    return math.sqrt((1 + clamped_autocorrelation) / (1 - clamped_autocorrelation))


def _estimate_drift(batches: Sequence) -> Optional[float]:
    """Change of the rate over the batches, by linear regression; None if it is not significant or there are fewer than
    6 batches."""
    batch_rates = [value / step_count for step_count, value in batches]
    batch_count = len(batch_rates)
    if batch_count < 6:
        return None
    mean_index, mean_rate = (batch_count - 1) / 2, statistics.fmean(batch_rates)
    squared_index_deviations = sum((batch_index - mean_index) ** 2 for batch_index in range(batch_count))
    slope = (
        sum((batch_index - mean_index) * rate for batch_index, rate in enumerate(batch_rates))
        / squared_index_deviations
    )
    residuals = [rate - mean_rate - slope * (batch_index - mean_index) for batch_index, rate in enumerate(batch_rates)]
    slope_error = math.sqrt(sum(residual**2 for residual in residuals) / (batch_count - 2) / squared_index_deviations)
    total_change = slope * (batch_count - 1)
    if abs(total_change) < MIN_RELATIVE_DRIFT * abs(mean_rate) or (
        slope_error > 0 and abs(slope) / slope_error < MIN_DRIFT_T_VALUE
    ):
        return None
    return total_change


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
        remaining_occurrences = kind.count_occurrences(end, steps)
        if kind.name in series_forecast.costs or remaining_occurrences == 0:
            continue
        if evaluation_steps is not None and kind.name == evaluation_kind_name(kinds):
            value_at_step_rate = remaining_occurrences * evaluation_steps * series_forecast.rate
            total, low, high = (
                total + EVALUATION_BATCH_COST * value_at_step_rate,
                low + EVALUATION_BATCH_COST_LOW * value_at_step_rate,
                high + EVALUATION_BATCH_COST_HIGH * value_at_step_rate,
            )
        else:
            high += remaining_occurrences * UNSEEN_WORK_COST_SHARE * min(kind.period, steps) * series_forecast.rate
    if not kinds and not is_declared:
        expected_until_step = UNDECLARED_WORK_SHARE * steps
        high += (
            max(0.0, 1 - end / expected_until_step)
            * UNSEEN_WORK_COST_SHARE
            * max(0, steps - end)
            * series_forecast.rate
        )
    return series_forecast._replace(total=total, low=low, high=high)


def evaluation_kind_name(kinds: Sequence) -> Optional[str]:
    """The recurring work that contains the evaluation: declared as "evaluation", otherwise the end of an epoch."""
    kind_names = [kind.name for kind in kinds]
    return next((name for name in ("evaluation", "epoch") if name in kind_names), None)
