# SPDX-License-Identifier: Apache-2.0
"""Statistics of studies: intervals, trends, power laws, and verdicts on claims. Standard library only.

Intervals are 90 % intervals unless stated otherwise. Random numbers have a fixed seed: the same data give the same
page.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import Callable, NamedTuple, Sequence

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "python" / "joulemap"))
from _validate_statistics import t_quantile_95  # noqa: E402  pure computation

CONFIRMED, REFUTED, NOT_SHOWN = "confirmed", "refuted", "not shown"
SEED, REPLICATE_COUNT = 20240414, 2000


class Interval(NamedTuple):
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return self.as_text(".3f")

    def as_text(self, form: str) -> str:
        return f"{self.value:{form}} ({self.low:{form}} to {self.high:{form}})"

    def scaled_by(self, factor: float) -> Interval:
        return Interval(self.value * factor, *sorted((self.low * factor, self.high * factor)))

    def ratio_to(self, other: Interval) -> Interval:
        """Ratio with an interval from the extremes of both intervals: conservative, rather too wide than too narrow."""
        if other.low <= 0:
            return Interval(self.value / other.value if other.value else math.inf, -math.inf, math.inf)
        return Interval(self.value / other.value, self.low / other.high, self.high / other.low)


def verdict_above(interval: Interval, lower_limit: float) -> str:
    """Verdict on the claim that the value is above `lower_limit`."""
    if interval.low > lower_limit:
        return CONFIRMED
    return REFUTED if interval.high < lower_limit else NOT_SHOWN


def verdict_within(interval: Interval, low: float, high: float) -> str:
    """Verdict on the claim that the value lies between `low` and `high`."""
    if low <= interval.low and interval.high <= high:
        return CONFIRMED
    return REFUTED if interval.high < low or interval.low > high else NOT_SHOWN


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean of independent values with Student's t interval; infinite for a single value."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Interval(mean, -math.inf, math.inf)
    half_width = t_quantile_95(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half_width, mean + half_width)


def sum_interval(parts: Sequence[Interval]) -> Interval:
    """Sum of parts whose errors may be fully correlated."""
    return Interval(*(sum(part[i] for part in parts) for i in range(3)))


class Fit(NamedTuple):
    """Least squares: coefficients, their covariance, and the residual degrees of freedom."""

    coefficients: list[float]
    covariance: list[list[float]]
    degrees: int
    residuals: list[float]

    def linear_combination(self, weights: Sequence[float]) -> Interval:
        """Linear combination of the coefficients, with its interval."""
        value = sum(weight * coefficient for weight, coefficient in zip(weights, self.coefficients))
        columns = range(len(weights))
        variance = sum(weights[i] * weights[j] * self.covariance[i][j] for i in columns for j in columns)
        half_width = t_quantile_95(self.degrees) * math.sqrt(max(0.0, variance)) if self.degrees > 0 else math.inf
        return Interval(value, value - half_width, value + half_width)

    def coefficient(self, number: int) -> Interval:
        return self.linear_combination([float(i == number) for i in range(len(self.coefficients))])


def least_squares(rows: Sequence[Sequence[float]], targets: Sequence[float]) -> Fit:
    """Fits by least squares; ValueError where columns are collinear."""
    count = len(rows[0])
    normal = [[sum(row[i] * row[j] for row in rows) for j in range(count)] for i in range(count)]
    inverse_matrix = invert_matrix(normal)
    right_hand_side = [sum(row[i] * target for row, target in zip(rows, targets)) for i in range(count)]
    coefficients = [sum(inverse_matrix[i][j] * right_hand_side[j] for j in range(count)) for i in range(count)]
    residuals = [
        target - sum(coefficient * x for coefficient, x in zip(coefficients, row)) for row, target in zip(rows, targets)
    ]
    degrees = len(rows) - count
    noise = sum(residual * residual for residual in residuals) / degrees if degrees > 0 else 0.0
    return Fit(
        coefficients,
        [[noise * matrix_element for matrix_element in line] for line in inverse_matrix],
        degrees,
        residuals,
    )


def invert_matrix(matrix: list[list[float]]) -> list[list[float]]:
    """Inverts by Gauss-Jordan elimination; scales first, so that units do not matter."""
    size = len(matrix)
    scale = [math.sqrt(matrix[i][i]) or 1.0 for i in range(size)]
    lines = [[matrix[i][j] / (scale[i] * scale[j]) for j in range(size)] + [float(i == j) for j in range(size)]
             for i in range(size)]  # fmt: skip
    for column in range(size):
        pivot_line = max(range(column, size), key=lambda line: abs(lines[line][column]))
        if abs(lines[pivot_line][column]) < 1e-10:
            raise ValueError("columns that are linearly dependent")
        lines[column], lines[pivot_line] = lines[pivot_line], lines[column]
        pivot = lines[column][column]
        lines[column] = [value / pivot for value in lines[column]]
        for line in range(size):
            if line != column:
                factor = lines[line][column]
                lines[line] = [value - factor * pivot_value for value, pivot_value in zip(lines[line], lines[column])]
    return [[lines[i][size + j] / (scale[i] * scale[j]) for j in range(size)] for i in range(size)]


def fit_power_law(sizes: Sequence[Sequence[float]], values: Sequence[float]) -> Fit:
    """Fits log value = constant + sum of exponent * log size, with one exponent for each size."""
    return least_squares([[1.0, *map(math.log, row)] for row in sizes], [math.log(value) for value in values])


class Trend(NamedTuple):
    """Trend of values at equal intervals of time."""

    slope: Interval  # Theil-Sen slope per interval
    p: float  # Mann-Kendall test of no trend, corrected for autocorrelation
    tau: float
    inflation: float  # factor of the test's variance due to autocorrelation

    def is_significant(self) -> bool:
        return self.p < 0.05 and (self.slope.low > 0 or self.slope.high < 0)


def compute_theil_sen_slope(values: Sequence[float]) -> float:
    pairs = [(values[j] - values[i]) / (j - i) for i in range(len(values)) for j in range(i + 1, len(values))]
    return statistics.median(pairs)


def mann_kendall_trend(values: Sequence[float]) -> Trend:
    """Mann-Kendall test with the variance of autocorrelated values (Hamed and Rao 1998), and the Theil-Sen slope with
    an interval from a block bootstrap of the residuals."""
    count = len(values)
    if count < 8:
        raise ValueError(f"{count} values are too few for a trend")
    slope = compute_theil_sen_slope(values)
    score = sum(sign(values[j] - values[i]) for i in range(count) for j in range(i + 1, count))
    flat = [value - slope * i for i, value in enumerate(values)]
    inflation = autocorrelation_inflation(flat)
    variance = count * (count - 1) * (2 * count + 5) / 18 * inflation
    z = (score - sign(score)) / math.sqrt(variance)
    median = statistics.median(flat)
    resampled_slopes = []
    for noise in block_bootstrap_samples([detrended_value - median for detrended_value in flat]):
        resampled_slopes.append(draw_theil_sen_slope(slope, noise))
    low, high = central_interval(resampled_slopes)
    p = math.erfc(abs(z) / math.sqrt(2))
    return Trend(Interval(slope, low, high), p, 2 * score / (count * (count - 1)), inflation)


def draw_theil_sen_slope(slope: float, noise: Sequence[float]) -> float:
    """Theil-Sen slope of at most 60 values: all pairs of hundreds of values, 2000 times, would take minutes."""
    stride = max(1, math.ceil(len(noise) / 60))
    return slope + compute_theil_sen_slope(noise[::stride]) / stride


def sign(value: float) -> int:
    return (value > 0) - (value < 0)


def autocorrelation_inflation(values: Sequence[float]) -> float:
    """Factor of the variance of Mann-Kendall's score: from the significant autocorrelations of the ranks (Hamed and
    Rao), or from the first autocorrelation alone, whichever is larger. Short series underestimate their
    autocorrelation."""
    count = len(values)
    ranks, total = compute_ranks(values), 0.0
    for lag in range(1, min(count - 3, count // 2)):
        rank_autocorrelation = autocorrelation(ranks, lag)
        if abs(rank_autocorrelation) > 1.96 / math.sqrt(count):
            total += (count - lag) * (count - lag - 1) * (count - lag - 2) * rank_autocorrelation
    lag1_autocorrelation = autocorrelation(ranks, 1)
    lag1_autocorrelation = min(0.95, lag1_autocorrelation + (1 + 4 * lag1_autocorrelation) / count)
    # With negative autocorrelation the factor stays 1: the plain test is conservative there.
    return max(
        1.0,
        1 + 2 / (count * (count - 1) * (count - 2)) * total,
        (1 + lag1_autocorrelation) / (1 - lag1_autocorrelation),
    )


def compute_ranks(values: Sequence[float]) -> list[float]:
    """Ranks of the values; ties get the mean of their ranks."""
    sorted_values = sorted(values)
    return [(bisect_left(sorted_values, value) + bisect_right(sorted_values, value) - 1) / 2 for value in values]


def autocorrelation(values: Sequence[float], lag: int) -> float:
    mean = statistics.fmean(values)
    squared_deviation_sum = sum((value - mean) ** 2 for value in values)
    return (
        sum((a - mean) * (b - mean) for a, b in zip(values, values[lag:])) / squared_deviation_sum
        if squared_deviation_sum
        else 0.0
    )


def block_bootstrap_samples(values: Sequence[float], replicates: int = 400) -> list[list[float]]:
    """Draws resamples of the same length in blocks, which preserves autocorrelation."""
    chance, count = random.Random(SEED), len(values)
    length = max(1, round(count ** (1 / 3) * (2 if autocorrelation(values, 1) > 0.2 else 1)))
    draws = []
    for _ in range(replicates):
        bootstrap_sample: list[float] = []
        while len(bootstrap_sample) < count:
            block_start = chance.randrange(count - length + 1)
            bootstrap_sample += values[block_start : block_start + length]
        draws.append(bootstrap_sample[:count])
    return draws


def bootstrap(values: Sequence, statistic: Callable[[Sequence], float]) -> Interval:
    """Bootstrap interval of a statistic of independent values."""
    chance = random.Random(SEED)
    bootstrap_statistics = [statistic(chance.choices(values, k=len(values))) for _ in range(REPLICATE_COUNT)]
    return Interval(statistic(values), *central_interval(bootstrap_statistics))


def central_interval(values: Sequence[float], share: float = 0.9) -> tuple[float, float]:
    sorted_values = sorted(values)
    lower_bound_rank = (1 - share) / 2 * (len(sorted_values) - 1)
    return sorted_values[math.floor(lower_bound_rank)], sorted_values[
        math.ceil(len(sorted_values) - 1 - lower_bound_rank)
    ]
