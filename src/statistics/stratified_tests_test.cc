// SPDX-License-Identifier: Apache-2.0
#include "statistics/stratified_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "statistics/random.h"
#include "statistics/rank_tests.h"

namespace joulemap::statistics {
namespace {

// Midranks by definition: 1 + the count of smaller values + half of the count of other equal values.
std::vector<double> midranks_by_definition(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    const auto smaller_count = std::ranges::count_if(values, [&](double other_value) { return other_value < value; });
    ranks.push_back(static_cast<double>(smaller_count) +
                    (static_cast<double>(std::ranges::count(values, value)) + 1) / 2);
  }
  return ranks;
}

// All values that the weighted signed-rank sum (positive minus negative ranks) of a stratum can have; the observed
// first.
std::vector<double> possible_signed_sums(const Stratum& stratum) {
  std::vector<double> sizes;
  for (std::size_t i = 0; i < stratum.first_values.size(); ++i)
    sizes.push_back(std::abs(stratum.first_values[i] - stratum.second_values[i]));
  const std::vector<double> ranks = midranks_by_definition(sizes);
  std::vector<double> sums{0};
  for (unsigned signs = 0; signs < 1U << ranks.size(); ++signs) {
    double sum = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const double rank = sizes[i] == 0 ? 0 : ranks[i] / static_cast<double>(ranks.size() + 1);
      sum += (signs >> i & 1U) != 0 ? rank : -rank;
      if (signs == 0) sums[0] += stratum.first_values[i] > stratum.second_values[i] ? rank : -rank;
    }
    sums.push_back(sum);
  }
  return sums;
}

// The same for the rank sum of the first treatment, minus its expectation.
std::vector<double> possible_rank_sums(const Stratum& stratum) {
  std::vector<double> pooled_values = stratum.first_values;
  pooled_values.insert(pooled_values.end(), stratum.second_values.begin(), stratum.second_values.end());
  const std::vector<double> ranks = midranks_by_definition(pooled_values);
  const std::size_t n1 = stratum.first_values.size();
  const auto n = static_cast<double>(pooled_values.size());
  std::vector<double> sums;
  for (unsigned chosen_mask = (1U << n1) - 1; chosen_mask < 1U << pooled_values.size();
       ++chosen_mask) {  // the observed choice is the first
    if (static_cast<std::size_t>(std::popcount(chosen_mask)) != n1) continue;
    double sum = -static_cast<double>(n1) * (n + 1) / 2;
    for (std::size_t i = 0; i < ranks.size(); ++i) sum += (chosen_mask >> i & 1U) != 0 ? ranks[i] : 0;
    if (sums.empty()) sums.push_back(sum / (n + 1));
    sums.push_back(sum / (n + 1));
  }
  return sums;
}

double enumerated_p(const std::vector<Stratum>& strata,
                    const std::function<std::vector<double>(const Stratum&)>& possible_sums) {
  double observed_sum = 0;
  std::vector<double> sums{0};
  for (const Stratum& stratum : strata) {
    const std::vector<double> stratum_sums = possible_sums(stratum);
    observed_sum += stratum_sums[0];
    std::vector<double> next_sums;
    for (const double previous_sum : sums) {
      for (std::size_t i = 1; i < stratum_sums.size(); ++i) next_sums.push_back(previous_sum + stratum_sums[i]);
    }
    sums = std::move(next_sums);
  }
  const auto extreme_count =
      std::ranges::count_if(sums, [&](double sum) { return std::abs(sum) >= std::abs(observed_sum) - 1e-9; });
  return static_cast<double>(extreme_count) / static_cast<double>(sums.size());
}

std::vector<double> draw_integers(Random& random, std::size_t n, std::size_t distinct_value_count) {
  std::vector<double> values(n);
  for (double& value : values) value = static_cast<double>(random.uniform_below(distinct_value_count));
  return values;
}

TEST(StratifiedSignedRankTest, StratifiedSignedRankTestMatchesEnumeration) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<Stratum> strata;
    for (std::size_t stratum_index = 0; stratum_index < 3; ++stratum_index) {
      const std::size_t n = 2 + random.uniform_below(3);
      strata.push_back({draw_integers(random, n, 8), draw_integers(random, n, 6)});
    }
    const TestResult result = stratified_signed_rank_test(strata);
    EXPECT_EQ(result.p_value_method, PValueMethod::exact);
    EXPECT_NEAR(result.p, enumerated_p(strata, possible_signed_sums), 1e-12);
  }
}

TEST(StratifiedRankSumTest, StratifiedRankSumTestMatchesEnumeration) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<Stratum> strata;
    for (std::size_t stratum_index = 0; stratum_index < 3; ++stratum_index) {
      strata.push_back({draw_integers(random, 2 + random.uniform_below(2), 8),
                        draw_integers(random, 1 + random.uniform_below(4), 6)});
    }
    EXPECT_NEAR(stratified_rank_sum_test(strata).p, enumerated_p(strata, possible_rank_sums), 1e-12);
  }
}

TEST(StratifiedTests, StratifiedTestsAreTheTestsOfOneStratumIfThereIsOnlyOne) {
  Random random(3);
  const Stratum single_stratum{draw_integers(random, 9, 20), draw_integers(random, 9, 15)};
  EXPECT_NEAR(stratified_signed_rank_test(std::vector{single_stratum}).p,
              signed_rank_test(single_stratum.first_values, single_stratum.second_values).p, 1e-12);
  EXPECT_NEAR(stratified_rank_sum_test(std::vector{single_stratum}).p,
              rank_sum_test(single_stratum.first_values, single_stratum.second_values).p, 1e-12);
  const EffectEstimate stratified_estimate = *stratified_paired_shift(std::vector{single_stratum}, 0.95);
  const EffectEstimate plain_estimate = *paired_shift(single_stratum.first_values, single_stratum.second_values, 0.95);
  EXPECT_EQ(stratified_estimate.estimate, plain_estimate.estimate);
  EXPECT_EQ(stratified_estimate.low, plain_estimate.low);
  EXPECT_EQ(stratified_estimate.high, plain_estimate.high);
  EXPECT_NEAR(stratified_estimate.confidence, plain_estimate.confidence, 1e-12);
  EXPECT_EQ(stratified_unpaired_shift(std::vector{single_stratum}, 0.95)->low,
            unpaired_shift(single_stratum.first_values, single_stratum.second_values, 0.95)->low);
}

TEST(StratifiedTests, StratifiedTestsFindInManySmallStrataWhatNoneShowsAlone) {
  std::vector<Stratum> strata;
  strata.reserve(36);
  for (int stratum_index = 0; stratum_index < 36; ++stratum_index)
    strata.push_back({{stratum_index + 1.5, stratum_index + 1.6}, {stratum_index + 1.0, stratum_index + 1.2}});
  EXPECT_NEAR(stratified_signed_rank_test(strata).p, std::exp2(1 - 72), 1e-30);
  EXPECT_NEAR(stratified_rank_sum_test(strata).p / (2 * std::pow(6, -36)), 1, 1e-9);
}

TEST(StratifiedTests, StratifiedTestsCompareValuesOnlyWithinTheirStratum) {
  Random random(4);
  std::vector<Stratum> strata;
  for (std::size_t stratum_index = 0; stratum_index < 5; ++stratum_index)
    strata.push_back({draw_integers(random, 4, 1000), draw_integers(random, 4, 1000)});
  const double paired_p = stratified_signed_rank_test(strata).p;
  const double unpaired_p = stratified_rank_sum_test(strata).p;
  for (std::size_t stratum_index = 0; stratum_index < strata.size(); ++stratum_index) {
    for (auto* const values : {&strata[stratum_index].first_values, &strata[stratum_index].second_values}) {
      for (double& value : *values)
        value = value * std::exp2(static_cast<double>(stratum_index)) + 4096.0 * static_cast<double>(stratum_index);
    }
  }
  EXPECT_EQ(stratified_signed_rank_test(strata).p, paired_p);
  EXPECT_EQ(stratified_rank_sum_test(strata).p, unpaired_p);
}

TEST(StratifiedTests, StratifiedTestsLeaveOutStrataWithoutRepetitions) {
  const std::vector<Stratum> single_value_strata{{{2}, {1}}, {{3}, {1}}, {{}, {1, 2}}};
  EXPECT_EQ(stratified_signed_rank_test(std::vector{single_value_strata[0], single_value_strata[1]}).n, 0U);
  EXPECT_EQ(stratified_rank_sum_test(single_value_strata).n, 0U);
  EXPECT_EQ(stratified_rank_sum_test(single_value_strata).p, 1);
  EXPECT_FALSE(stratified_unpaired_shift(single_value_strata, 0.95));
  EXPECT_FALSE(stratified_paired_shift({}, 0.95));
  EXPECT_EQ(stratified_signed_rank_test(std::vector<Stratum>{{{1, 2}, {1, 2}}}).p, 1) << "no difference";
}

TEST(StratifiedTests, StratifiedTestsApproximateBeyondTheirLimitAndReportIt) {
  Random random(5);
  std::vector<Stratum> strata(40);
  for (Stratum& stratum : strata) {
    for (std::size_t i = 0; i < 30 + random.uniform_below(9); ++i) {
      stratum.first_values.push_back(random.normal() + 0.06);
      stratum.second_values.push_back(random.normal());
    }
  }
  const TestResult test_result = stratified_signed_rank_test(strata);
  EXPECT_EQ(test_result.p_value_method, PValueMethod::normal);
  EXPECT_EQ(stratified_rank_sum_test(strata).p_value_method, PValueMethod::normal);
  const EffectEstimate shift = *stratified_paired_shift(strata, 0.95);
  EXPECT_EQ(test_result.p<0.05, shift.low> 0 || shift.high < 0);
  EXPECT_NEAR(shift.confidence, 0.95, 0.001);
}

// The interval contains exactly the shifts that the test does not reject.
TEST(StratifiedShift, StratifiedShiftInvertsTheTest) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<Stratum> strata(4 + random.uniform_below(4));
    for (Stratum& stratum : strata) {
      for (std::size_t i = 0; i < 2 + random.uniform_below(3); ++i) {
        stratum.first_values.push_back(random.normal() + 1);
        stratum.second_values.push_back(random.normal());
      }
      while (stratum.second_values.size() < stratum.first_values.size())
        stratum.second_values.push_back(random.normal());
    }
    const auto p_value_at_shift = [&](double shift, bool is_paired) {
      std::vector<Stratum> shifted_strata = strata;
      for (Stratum& stratum : shifted_strata) {
        for (double& value : stratum.first_values) value -= shift;
      }
      return is_paired ? stratified_signed_rank_test(shifted_strata).p : stratified_rank_sum_test(shifted_strata).p;
    };
    for (const bool is_paired : {true, false}) {
      const EffectEstimate shift =
          is_paired ? *stratified_paired_shift(strata, 0.95) : *stratified_unpaired_shift(strata, 0.95);
      EXPECT_GE(shift.confidence, 0.95);
      EXPECT_GT(p_value_at_shift(shift.low + 1e-9, is_paired), 0.05);
      EXPECT_LE(p_value_at_shift(shift.low - 1e-9, is_paired), 0.05);
      EXPECT_GT(p_value_at_shift(shift.high - 1e-9, is_paired), 0.05);
      EXPECT_LE(p_value_at_shift(shift.high + 1e-9, is_paired), 0.05);
      EXPECT_GT(p_value_at_shift(shift.estimate, is_paired), 0.5);
    }
  }
}

TEST(StrataConsistency, CountsEffectDirectionsOfStrataAndTestsThem) {
  const std::vector<double> effects{0.3, 0.2, 0.1, 0.4, 0.5, 0.6, -0.05, 0};
  const StrataConsistency result = compute_strata_consistency(effects, 0.95);
  EXPECT_EQ(result.higher_count, 6U);
  EXPECT_EQ(result.lower_count, 1U);
  EXPECT_EQ(result.equal_count, 1U);
  EXPECT_NEAR(result.sign_test_p, 2 * 8.0 / 128, 1e-12);
  EXPECT_EQ(result.signed_rank_result.p, signed_rank_test(effects).p);
  EXPECT_GT(result.shift->estimate, 0.15);
  EXPECT_EQ(compute_strata_consistency({}, 0.95).sign_test_p, 1);
}

TEST(QualitativeInteractionTest, QualitativeInteractionNeedsClearEffectsInBothDirections) {
  const std::vector<double> errors(4, 0.1);
  EXPECT_EQ(qualitative_interaction_test(std::vector{1.0, 2.0, 0.5, 0.1}, errors, 20).p, 1);
  EXPECT_GT(qualitative_interaction_test(std::vector{1.0, 2.0, 0.5, -0.1}, errors, 20).p, 0.3);
  EXPECT_LT(qualitative_interaction_test(std::vector{1.0, 2.0, -0.5, -0.4}, errors, 20).p, 0.001);
  // Gail and Simon, table 1: the critical value at the level 0.05 is 5.43 for 4 strata and 2.71 for 2.
  const std::vector<double> critical_effects{std::sqrt(5.43) / 10, 1, 1, 1};
  std::vector<double> effects = critical_effects;
  effects[0] = -effects[0];
  EXPECT_NEAR(qualitative_interaction_test(effects, errors, 1e9).p, 0.05, 1e-3);
  EXPECT_NEAR(qualitative_interaction_test(std::vector{-std::sqrt(2.71) / 10, 1.0}, std::vector{0.1, 0.1}, 1e9).p, 0.05,
              1e-3);
}

}  // namespace
}  // namespace joulemap::statistics
