// SPDX-License-Identifier: Apache-2.0
//
// Effect sizes: as a probability (A12, Cliff's delta), and in units of the values or percent (Hodges-Lehmann shift).
// Differences are first - second; A12 is the probability that the first group is greater. Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace joulemap::statistics {

// Vargha and Delaney's A12: the probability that a value of the first group is greater than one of the second, with
// ties counted as half. 0.5 where a group is empty.
double vargha_delaney_a12(std::span<const double> first_values, std::span<const double> second_values);
// Cliff's delta, 2 A12 - 1: from -1 (first always less) to 1.
double cliffs_delta(std::span<const double> first_values, std::span<const double> second_values);
// "negligible" for |delta| below 0.147, "small" below 0.33, "medium" below 0.474, otherwise "large" (Romano et al.
// 2006).
std::string_view cliffs_delta_magnitude(double delta);

// An effect size and its confidence interval. For a shift, the interval contains the shifts that the exact test
// (two-sided, ignoring ties) would not reject; for large samples, the test with the normal approximation and continuity
// correction. `confidence` is then the actual confidence: at least the requested one, or less where there are too few
// values, in which case the interval spans all differences.
struct EffectEstimate {
  double estimate = 0;
  double low = 0;
  double high = 0;
  double confidence = 0;
};

// A12 with an interval (Newcombe 2006, method 5). The bounds are found by bisection, so they stay within 0 .. 1, and
// the interval has a width even where the groups do not overlap. Nothing where a group is empty. For Cliff's delta
// apply 2 A12 - 1 to the estimate and to both bounds.
std::optional<EffectEstimate> a12_interval(std::span<const double> first_values, std::span<const double> second_values,
                                           double confidence);

// Shift of pairs (Hodges-Lehmann): the median of the Walsh averages, the means of any two differences, including each
// with itself. Zero differences count. Nothing without pairs. Time n log n, memory n.
std::optional<EffectEstimate> paired_shift(std::span<const double> first_values, std::span<const double> second_values,
                                           double confidence);
// Shift of independent groups (Hodges-Lehmann): the median of all differences between a value of the first and one of
// the second. Nothing where a group is empty.
std::optional<EffectEstimate> unpaired_shift(std::span<const double> first_values,
                                             std::span<const double> second_values, double confidence);

// The same shifts as ratios, in percent of the second: 3 means that the first is 3 % greater. Computed as shifts of
// logarithms, so that swapping the two gives the inverse ratio. Nothing where a group is empty or a value is not above
// 0.
std::optional<EffectEstimate> paired_percent(std::span<const double> first_values,
                                             std::span<const double> second_values, double confidence);
std::optional<EffectEstimate> unpaired_percent(std::span<const double> first_values,
                                               std::span<const double> second_values, double confidence);

}  // namespace joulemap::statistics
