// SPDX-License-Identifier: Apache-2.0
//
// Repetitions in the order in which they ran: tests for a drift, for one change point (a warm-up, or a machine that was
// updated) and for outliers. These functions remove no values: the caller flags and reports them. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "statistics/ranks.h"

namespace joulemap::statistics {

// Mann-Kendall test for a drift. p is exact within the limits of kendall() (correlation.h), otherwise normal with
// continuity correction. p is 1 for fewer than two values or without any spread.
struct Trend {
  TestResult test;            // statistic: S, rising minus falling pairs
  double tau = 0;             // Kendall's tau-b with the order; 0 without any spread
  double slope = 0;           // Theil-Sen: the median of all slopes, in units of the values per repetition
  double relative_slope = 0;  // slope / |median|; 0 where the median is 0
};
Trend mann_kendall_trend(std::span<const double> values);

// Pettitt's test for one change point: the position that splits the values into the two most different parts.
struct ChangePoint {
  TestResult test;  // statistic: K, the largest |U| over all positions; method: permutation, or exact up to 8 values
  std::size_t first_after_change = 0;  // index of the first value after the change
  double median_before = 0;
  double median_after = 0;
};
// p by random permutations from the seed, until 100 of them reach K (Besag and Clifford 1991), at most 9,999. Nothing
// for fewer than two values.
std::optional<ChangePoint> find_change_point(std::span<const double> values, std::uint64_t seed = 1);
// A change point with p <= alpha in the first half: the values before it are the warm-up, and at least half of the
// values remain after it. Otherwise nothing.
std::optional<ChangePoint> find_warm_up_end(std::span<const double> values, double alpha, std::uint64_t seed = 1);

// Indices of outliers in increasing order: values with a modified z-score 0.6745 |x - median| / MAD above the limit
// (Iglewicz and Hoaglin: 3.5). Where MAD is 0, because more than half of the values are equal, the score is |x -
// median| / (1.2533 x the mean of |x - median|).
std::vector<std::size_t> find_modified_z_outliers(std::span<const double> values, double limit = 3.5);
// Indices of values that lie outside of the quartiles by more than `fence_factor` times the interquartile range (Tukey: 1.5,
// far out: 3).
std::vector<std::size_t> find_tukey_outliers(std::span<const double> values, double fence_factor = 1.5);

}  // namespace joulemap::statistics
