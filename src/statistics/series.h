// SPDX-License-Identifier: Apache-2.0
//
// Repetitions in the order in which they ran: whether they drift, whether they change at one place (a warm-up, a
// machine that was updated), and which of them lie apart. Nothing is dropped here: who calls flags and tells. Pure;
// any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "statistics/ranks.h"

namespace joulemap::statistics {

// Mann and Kendall's test for a drift. Exact as Kendall's tau is (correlation.h), else normal with continuity
// correction.
struct Trend {
  TestResult test;            // statistic: S, pairs that rise minus pairs that fall
  double tau = 0;             // Kendall's tau-b with the order; 0 without any spread
  double slope = 0;           // Theil and Sen's: the median of all slopes, in units of the values for one repetition
  double relative_slope = 0;  // of the median's size; 0 where that is 0
};
Trend mann_kendall(std::span<const double> values);

// Pettitt's test for one change: the place that splits the values into the two most different parts.
struct ChangePoint {
  TestResult test;  // statistic: K, the greatest |U| over all places; method: permutation, or exact up to 8 values
  std::size_t first = 0;  // the first value after the change
  double median_before = 0;
  double median_after = 0;
};
// p by permutations drawn from the seed until enough of them reach K (Besag and Clifford 1991), 10,000 at the most.
// Nothing for fewer than two values.
std::optional<ChangePoint> change_point(std::span<const double> values, std::uint64_t seed = 1);
// A change with p <= alpha that leaves at least half of the values after it: what comes before was warming up.
std::optional<ChangePoint> warm_up(std::span<const double> values, double alpha, std::uint64_t seed = 1);

// Values that lie apart, as indices in order. Modified z-score 0.6745 |x - median| / MAD above the limit (Iglewicz
// and Hoaglin: 3.5). Where MAD is 0, since more than half of the values are equal, |x - median| / (1.2533 x the mean
// of such distances) takes its place.
std::vector<std::size_t> modified_z_outliers(std::span<const double> values, double limit = 3.5);
// Beyond the quartiles by more than `reach` of their distance (Tukey: 1.5, far out: 3).
std::vector<std::size_t> tukey_outliers(std::span<const double> values, double reach = 1.5);

}  // namespace joulemap::statistics
