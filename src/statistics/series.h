// SPDX-License-Identifier: Apache-2.0
//
// Repetitions in the order in which they ran: tests for a drift, for one change point (a warm-up, an updated machine)
// and for outliers. These functions drop nothing: the caller flags and reports. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "statistics/ranks.h"

namespace joulemap::statistics {

// Mann-Kendall test for a drift. Exact where Kendall's tau is (correlation.h), otherwise normal with continuity
// correction.
struct Trend {
  TestResult test;            // statistic: S, rising minus falling pairs
  double tau = 0;             // Kendall's tau-b with the order; 0 without any spread
  double slope = 0;           // Theil-Sen: the median of all slopes, in units of the values per repetition
  double relative_slope = 0;  // slope / |median|; 0 where the median is 0
};
Trend mann_kendall(std::span<const double> values);

// Pettitt's test for one change: the position that splits the values into the two most different parts.
struct ChangePoint {
  TestResult test;  // statistic: K, the largest |U| over all positions; method: permutation, or exact up to 8 values
  std::size_t first = 0;  // index of the first value after the change
  double median_before = 0;
  double median_after = 0;
};
// p by permutations drawn from the seed until enough of them reach K (Besag and Clifford 1991), at most 10,000. Nothing
// for fewer than two values.
std::optional<ChangePoint> change_point(std::span<const double> values, std::uint64_t seed = 1);
// A change with p <= alpha that leaves at least half of the values after it: the values before it are the warm-up.
std::optional<ChangePoint> find_warm_up(std::span<const double> values, double alpha, std::uint64_t seed = 1);

// Indices of outliers, in order. Modified z-score 0.6745 |x - median| / MAD above the limit (Iglewicz and Hoaglin:
// 3.5). Where MAD is 0, because more than half of the values are equal, |x - median| / (1.2533 x the mean of such
// distances) replaces it.
std::vector<std::size_t> modified_z_outliers(std::span<const double> values, double limit = 3.5);
// Outside of the quartiles by more than `reach` times the interquartile range (Tukey: 1.5, far out: 3).
std::vector<std::size_t> tukey_outliers(std::span<const double> values, double reach = 1.5);

}  // namespace joulemap::statistics
