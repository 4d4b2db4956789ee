// SPDX-License-Identifier: Apache-2.0
//
// Tests of two treatments over strata, such as the combinations of other factors: few repetitions in each of many
// strata show together what none shows alone. Values are only compared within their stratum, so strata may differ in
// level and unit. The strata are combined by van Elteren's weights, 1 / (n + 1) for a stratum of n pairs or n values,
// which is locally most powerful for an equal shift in all strata (van Elteren 1960; of rank sums, and nearly so of
// signed ranks).
//
// p is conditional on the ties and zeros present. It is exact, by convolution of the strata's distributions, while that
// takes at most kMaxExactConvolutionSteps steps; beyond that it is the normal approximation with continuity correction.
// All p-values are two-sided and count all outcomes at least as far from the expectation. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "statistics/effect_size.h"
#include "statistics/ranks.h"

namespace joulemap::statistics {

inline constexpr double kMaxExactConvolutionSteps = 1e8;

// Values of two treatments in one stratum. Paired: first[i] and second[i] form a pair.
struct Stratum {
  std::vector<double> first_values;
  std::vector<double> second_values;
};

// False for strata without repetitions: a treatment has no value, or both have only one. The stratified tests leave
// them out; compute_strata_consistency() counts them.
bool has_repetitions(const Stratum& stratum);

// Stratified signed-rank test of pairs: ranks absolute differences within each stratum, zeros by Pratt. statistic: the
// sum of the rank sums of positive differences, each divided by n + 1. n: number of pairs. p is 1 without pairs.
TestResult stratified_signed_rank_test(std::span<const Stratum> strata);
// Van Elteren's test of independent values: the rank-sum test, stratified. statistic: the sum of U / (n1 + n2 + 1). n:
// number of values.
TestResult stratified_rank_sum_test(std::span<const Stratum> strata);

// Shift that is common to all strata (first - second), with the interval of the shifts that the test does not reject:
// a weighted median of the pairwise means or differences within strata. For values without ties. Nothing if the tests
// leave out all strata. For a common ratio pass logarithms.
std::optional<EffectEstimate> stratified_paired_shift(std::span<const Stratum> strata, double confidence);
std::optional<EffectEstimate> stratified_unpaired_shift(std::span<const Stratum> strata, double confidence);

// Whether strata agree, from one effect per stratum (first - second). Unlike the tests above this accounts for effects
// that differ between strata: it generalizes to strata like these. Effects must be finite.
struct StrataConsistency {
  std::size_t higher_count = 0;  // number of strata in which the effect is above 0
  std::size_t lower_count = 0;
  std::size_t equal_count = 0;
  TestResult signed_rank_result;        // of the effects
  double sign_test_p = 1;               // exact sign test of `higher_count` against `lower_count`
  std::optional<EffectEstimate> shift;  // of the effects (Hodges-Lehmann); nothing without strata
};
StrataConsistency compute_strata_consistency(std::span<const double> effects, double confidence);

// Gail and Simon's test (1985) of a qualitative interaction: does the true effect have different signs in different
// strata? `standard_errors` of the effects have `degrees_of_freedom` in common. statistic: the lesser of the sums of
// squared z of positive and of negative effects. p uses F instead of chi-squared, because the errors are estimated. p
// is 1 if all effects have the same sign.
TestResult qualitative_interaction_test(std::span<const double> effects, std::span<const double> standard_errors,
                                        double degrees_of_freedom);

}  // namespace joulemap::statistics
