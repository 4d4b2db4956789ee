"""Statistics of the studies of bench/h200: coverage of intervals, detection of trends, verdicts."""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "bench" / "h200"))

import study_statistics as numbers  # noqa: E402
from study_statistics import CONFIRMED, NOT_SHOWN, REFUTED, Interval  # noqa: E402


def ar1_noise(count: int, memory: float, seed: int) -> list[float]:
    """AR(1) noise with the autocorrelation `memory`."""
    chance, values = random.Random(seed), [0.0]
    for _ in range(count + 20):
        values.append(memory * values[-1] + chance.gauss(0, 1))
    return values[-count:]


def test_a_claim_is_confirmed_only_if_the_whole_interval_is_on_one_side():
    assert numbers.verdict_above(Interval(2, 1.1, 3), 1) == CONFIRMED
    assert numbers.verdict_above(Interval(0.5, 0.2, 0.9), 1) == REFUTED
    assert numbers.verdict_above(Interval(2, 0.9, 3), 1) == NOT_SHOWN
    assert numbers.verdict_within(Interval(1.0, 0.95, 1.05), 0.9, 1.1) == CONFIRMED
    assert numbers.verdict_within(Interval(1.5, 1.2, 1.8), 0.9, 1.1) == REFUTED
    assert numbers.verdict_within(Interval(1.1, 0.95, 1.25), 0.9, 1.1) == NOT_SHOWN


def test_a_single_value_has_an_infinite_interval():
    assert numbers.verdict_above(numbers.mean_interval([5.0]), 1) == NOT_SHOWN


def test_ratios_are_as_wide_as_both_intervals_allow():
    ratio = Interval(10, 8, 12).ratio_to(Interval(5, 4, 6))
    assert ratio == pytest.approx((2, 8 / 6, 3))
    assert numbers.verdict_above(Interval(1, 0.5, 2).ratio_to(Interval(0.1, -0.1, 0.3)), 0) == NOT_SHOWN


def test_an_interval_times_a_negative_number_still_has_its_low_end_first():
    assert Interval(1, 0.5, 2).scaled_by(-2) == (-2, -4, -1)


def test_nine_of_ten_intervals_of_a_mean_cover_it():
    chance, covered_count, interval_count = random.Random(7), 0, 1000
    for _ in range(interval_count):
        confidence_interval = numbers.mean_interval([chance.gauss(3, 1) for _ in range(5)])
        covered_count += confidence_interval.low <= 3 <= confidence_interval.high
    assert 0.87 <= covered_count / interval_count <= 0.93, covered_count / interval_count


def test_exponents_of_sizes_are_estimated_with_intervals_that_cover_them():
    sizes = [(hidden_size, layers) for hidden_size in (128, 256, 512, 768, 1024) for layers in (2, 4, 8, 12)]
    covered_count = 0
    for seed in range(200):
        chance = random.Random(seed)
        values = [
            0.001 * hidden_size**1.4 * layers**0.8 * math.exp(chance.gauss(0, 0.05)) for hidden_size, layers in sizes
        ]
        fit = numbers.fit_power_law(sizes, values)
        covered_count += fit.coefficient(1).low <= 1.4 <= fit.coefficient(1).high
        assert numbers.verdict_above(fit.linear_combination([0, 1, -1]), 0) == CONFIRMED
    assert 0.85 <= covered_count / 200 <= 0.95, covered_count / 200


def test_collinear_columns_are_rejected():
    with pytest.raises(ValueError, match="linearly dependent"):
        numbers.least_squares([[1.0, x, 2 * x] for x in range(8)], list(range(8)))


def test_a_real_trend_is_detected_and_its_interval_covers_the_slope():
    covered_count = significant_count = 0
    for seed in range(40):
        values = [100 - 0.05 * i + noise for i, noise in enumerate(ar1_noise(95, 0.3, seed))]
        trend = numbers.mann_kendall_trend(values)
        significant_count += trend.is_significant()
        covered_count += trend.slope.low <= -0.05 <= trend.slope.high
    assert significant_count >= 36, significant_count
    assert covered_count >= 30, covered_count


def test_autocorrelated_values_are_not_mistaken_for_a_trend():
    """A test that ignores autocorrelation would report a trend in every third series."""
    trends = [numbers.mann_kendall_trend(ar1_noise(95, 0.6, seed)) for seed in range(60)]
    false_positive_seeds = [seed for seed, trend in enumerate(trends) if trend.is_significant()]
    assert len(false_positive_seeds) <= 7, false_positive_seeds


def test_too_few_values_for_a_trend_are_refused():
    with pytest.raises(ValueError, match="too few"):
        numbers.mann_kendall_trend([1.0] * 7)


def test_the_same_values_give_the_same_intervals():
    values = ar1_noise(50, 0.5, 1)
    assert numbers.mann_kendall_trend(values) == numbers.mann_kendall_trend(values)
    assert numbers.bootstrap(values, max) == numbers.bootstrap(values, max)


def test_constant_values_have_no_trend():
    trend = numbers.mann_kendall_trend([1980.0] * 30)
    assert trend.slope == (0, 0, 0) and not trend.is_significant() and trend.inflation == pytest.approx(1, abs=0.2)
