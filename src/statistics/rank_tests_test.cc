// SPDX-License-Identifier: Apache-2.0
#include "statistics/rank_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "statistics/random.h"

namespace joulemap::statistics {
namespace {

// Few distinct values, so that there are ties and zeros.
std::vector<double> small_integers(Random& random, std::size_t n, std::size_t distinct_value_count) {
  std::vector<double> values(n);
  for (double& value : values)
    value =
        static_cast<double>(random.uniform_below(distinct_value_count)) - static_cast<double>(distinct_value_count / 2);
  return values;
}

std::vector<double> shift_values(std::vector<double> values, double shift) {
  for (double& value : values) value += shift;
  return values;
}

// Midranks by definition: 1 + the count of smaller values + half of the count of other equal values.
std::vector<double> midranks_by_counting(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    const auto smaller_count = std::ranges::count_if(values, [&](double other_value) { return other_value < value; });
    ranks.push_back(static_cast<double>(smaller_count) +
                    (static_cast<double>(std::ranges::count(values, value)) + 1) / 2);
  }
  return ranks;
}

double enumerated_signed_rank_p(std::vector<double> differences, ZeroDifferences zeros) {
  if (zeros == ZeroDifferences::drop) std::erase(differences, 0.0);
  std::vector<double> sizes;
  for (const double d : differences) sizes.push_back(std::abs(d));
  const std::vector<double> ranks = midranks_by_counting(sizes);
  double observed_sum = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    observed_sum += differences[i] > 0 ? ranks[i] : differences[i] < 0 ? -ranks[i] : 0;
  }
  int extreme_count = 0;
  for (unsigned signs = 0; signs < 1U << ranks.size(); ++signs) {
    double sum = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (differences[i] != 0) sum += (signs >> i & 1U) != 0 ? ranks[i] : -ranks[i];
    }
    extreme_count += std::abs(sum) >= std::abs(observed_sum) ? 1 : 0;
  }
  return extreme_count / std::exp2(static_cast<double>(ranks.size()));
}

double enumerated_rank_sum_p(const std::vector<double>& first_values, const std::vector<double>& second_values) {
  std::vector<double> pooled_values = first_values;
  pooled_values.insert(pooled_values.end(), second_values.begin(), second_values.end());
  const std::vector<double> ranks = midranks_by_counting(pooled_values);
  const double mean = static_cast<double>(first_values.size()) * (static_cast<double>(pooled_values.size()) + 1) / 2;
  const auto distance = [&](unsigned chosen_mask) {
    double sum = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) sum += (chosen_mask >> i & 1U) != 0 ? ranks[i] : 0;
    return std::abs(sum - mean);
  };
  const double observed_distance = distance((1U << first_values.size()) - 1);
  double extreme_count = 0;
  double arrangement_count = 0;
  for (unsigned chosen_mask = 0; chosen_mask < 1U << pooled_values.size(); ++chosen_mask) {
    if (static_cast<std::size_t>(std::popcount(chosen_mask)) != first_values.size()) continue;
    arrangement_count += 1;
    extreme_count += distance(chosen_mask) >= observed_distance ? 1 : 0;
  }
  return extreme_count / arrangement_count;
}

TEST(SignedRankTest, SignedRankTestMatchesEnumerationOfAllSigns) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const std::vector<double> differences =
        small_integers(random, 1 + random.uniform_below(8), 2 + random.uniform_below(12));
    for (const ZeroDifferences zeros : {ZeroDifferences::drop, ZeroDifferences::pratt}) {
      EXPECT_NEAR(signed_rank_test(differences, zeros).p, enumerated_signed_rank_p(differences, zeros), 1e-12);
    }
  }
}

TEST(RankSumTest, RankSumTestMatchesEnumerationOfAllAssignments) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const std::size_t distinct_value_count = 2 + random.uniform_below(15);
    const std::vector<double> first_values = small_integers(random, 1 + random.uniform_below(7), distinct_value_count);
    const std::vector<double> second_values = small_integers(random, 1 + random.uniform_below(7), distinct_value_count);
    EXPECT_NEAR(rank_sum_test(first_values, second_values).p, enumerated_rank_sum_p(first_values, second_values),
                1e-12);
  }
}

TEST(RankTests, RankTestsAreInvariantToSwapAndShift) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const std::size_t n = 2 + random.uniform_below(40);
    const std::vector<double> first_values = small_integers(random, n, 20);
    const std::vector<double> second_values = small_integers(random, n, 25);
    EXPECT_EQ(signed_rank_test(first_values, second_values).p, signed_rank_test(second_values, first_values).p);
    EXPECT_NEAR(rank_sum_test(first_values, second_values).p, rank_sum_test(second_values, first_values).p, 1e-12);
    EXPECT_EQ(signed_rank_test(first_values, second_values).p,
              signed_rank_test(shift_values(first_values, 7), shift_values(second_values, 7)).p);
    EXPECT_EQ(rank_sum_test(first_values, second_values).p,
              rank_sum_test(shift_values(first_values, 7), shift_values(second_values, 7)).p);
    const std::vector<std::vector<double>> groups{first_values, second_values};
    const std::vector<std::vector<double>> swapped_groups{second_values, shift_values(first_values, 0)};
    EXPECT_NEAR(kruskal_wallis_test(groups).p, kruskal_wallis_test(swapped_groups).p, 1e-12);
  }
}

TEST(SignedRankTest, PValueOfASmallTailNeverRoundsToZero) {
  const TestResult result = signed_rank_test(std::vector<double>(150, 1.0));
  EXPECT_EQ(result.p_value_method, PValueMethod::exact);
  EXPECT_EQ(result.p, std::exp2(-149));
  EXPECT_EQ(signed_rank_test(std::vector<double>(10, 2.5)).p, 0.001953125);
}

TEST(RankSumTest, PValueOfASmallTailNeverRoundsToZero) {
  std::vector<double> low(50);
  for (std::size_t i = 0; i < low.size(); ++i) low[i] = static_cast<double>(i);
  const TestResult result = rank_sum_test(low, shift_values(low, 100));
  EXPECT_EQ(result.p_value_method, PValueMethod::exact);
  EXPECT_NEAR(result.p * 1.0089134454556415e29, 2, 1e-9);  // C(100, 50); p is 2 / C(100, 50)
}

TEST(RankTests, RankTestsApproximateBeyondTheirLimitsAndReportIt) {
  Random random(5);
  std::vector<double> exact(kMaxExactSignedRankSize);
  for (double& value : exact) value = random.normal() + 0.1;
  const TestResult exact_result = signed_rank_test(exact);
  exact.push_back(1e-9);  // a difference of the lowest rank hardly changes the statistic
  const TestResult normal_result = signed_rank_test(exact);
  EXPECT_EQ(exact_result.p_value_method, PValueMethod::exact);
  EXPECT_EQ(normal_result.p_value_method, PValueMethod::normal);
  EXPECT_NEAR(exact_result.p, normal_result.p, 0.01);

  std::vector<double> first_values(60);
  std::vector<double> second_values(60);
  for (double& value : first_values) value = random.normal() + 0.3;
  for (double& value : second_values) value = random.normal();
  const TestResult rank_sum_result = rank_sum_test(first_values, second_values);
  EXPECT_EQ(rank_sum_result.p_value_method, PValueMethod::normal);
  EXPECT_GT(rank_sum_result.p, 0);
}

TEST(RankTests, RankTestsAreNotSignificantForEmptyOrEqualValues) {
  const std::vector<double> empty_values;
  const std::vector<double> constant_values(6, 3.0);
  EXPECT_EQ(signed_rank_test(empty_values).p, 1);
  EXPECT_EQ(signed_rank_test(constant_values, constant_values).p, 1);
  EXPECT_EQ(signed_rank_test(constant_values, constant_values).n, 0U);
  EXPECT_EQ(rank_sum_test(constant_values, constant_values).p, 1);
  EXPECT_EQ(rank_sum_test(constant_values, empty_values).p, 1);
  const std::vector<std::vector<double>> groups{constant_values, constant_values, constant_values};
  EXPECT_EQ(kruskal_wallis_test(groups).p, 1);
  EXPECT_EQ(friedman_test(groups).p, 1);
  EXPECT_EQ(friedman_test({}).p, 1);
  EXPECT_EQ(kruskal_wallis_test({}).p, 1);
}

TEST(FriedmanTest, FriedmanTestUsesOnlyTheOrderWithinABlock) {
  const std::vector<std::vector<double>> blocks{{1, 2, 3}, {10, 20, 31}, {5, 6, 9}, {7, 9, 8}};
  std::vector<std::vector<double>> shifted_blocks = blocks;
  for (std::size_t b = 0; b < shifted_blocks.size(); ++b)
    shifted_blocks[b] = shift_values(shifted_blocks[b], 1000.0 * static_cast<double>(b));
  EXPECT_EQ(friedman_test(blocks).p, friedman_test(shifted_blocks).p);
  EXPECT_NEAR(friedman_test(blocks).statistic, 6.5, 1e-12);
}

}  // namespace
}  // namespace joulemap::statistics
