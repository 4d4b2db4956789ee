// SPDX-License-Identifier: Apache-2.0
#include "statistics/sample_size.h"

#include <gtest/gtest.h>

#include "statistics/rank_tests.h"

namespace joulemap::statistics {
namespace {

TEST(MinPValue, MinPValueEqualsTheExactTestAtTheGreatestDifference) {
  std::vector<double> low;
  std::vector<double> high;
  for (std::size_t n = 1; n <= 30; ++n) {
    low.push_back(static_cast<double>(n));
    high.push_back(1000 + 2 * static_cast<double>(n));
    EXPECT_DOUBLE_EQ(min_p_value_paired(n), signed_rank_test(high, low).p);
    EXPECT_NEAR(min_p_value_unpaired(n, n) / rank_sum_test(high, low).p, 1, 1e-12);
  }
  EXPECT_DOUBLE_EQ(min_p_value_paired(10), 0.001953125);
  EXPECT_NEAR(min_p_value_unpaired(10, 10), 1.0825e-5, 1e-8);
}

TEST(MinRepetitions, TenPairsDoNotSurviveTwentySixComparisons) {
  EXPECT_LE(min_p_value_paired(10) * 25, 0.05);
  EXPECT_GT(min_p_value_paired(10) * 26, 0.05);
  EXPECT_EQ(min_repetitions(Pairing::paired, 0.05, 25), 10U);
  EXPECT_EQ(min_repetitions(Pairing::paired, 0.05, 26), 11U);
  EXPECT_EQ(min_repetitions(Pairing::paired, 0.05), 6U);
  EXPECT_EQ(min_repetitions(Pairing::unpaired, 0.05), 4U);
}

TEST(SimulatedPower, SimulatedPowerGrowsWithRepetitionsAndIsAlphaWithoutADifference) {
  const TargetDifference target{0.01, 0.01, 0.05, 1};
  const double power_with_8_pairs = simulate_test_power(Pairing::paired, 8, target);
  const double power_with_40_pairs = simulate_test_power(Pairing::paired, 40, target);
  EXPECT_LT(power_with_8_pairs, power_with_40_pairs);
  EXPECT_GT(power_with_40_pairs, 0.95);
  EXPECT_LE(simulate_test_power(Pairing::unpaired, 12, {0, 0.01, 0.05, 1}), 0.05 + 2 * 0.007);
  EXPECT_EQ(simulate_test_power(Pairing::paired, 5, {1, 0.01, 0.05, 1}), 0);  // p cannot be below 1/16
}

TEST(RepetitionsNeeded, NeededRepetitionsAreTheSmallestCountWithThatPower) {
  const TargetDifference target{0.03, 0.01, 0.05, 1};
  for (const Pairing pairing : {Pairing::paired, Pairing::unpaired}) {
    const auto n = find_needed_repetitions(pairing, target);
    ASSERT_TRUE(n);
    EXPECT_LE(*n, 10U);
    EXPECT_GE(simulate_test_power(pairing, *n, target), 0.9);
    EXPECT_LT(simulate_test_power(pairing, *n - 1, target), 0.9);
  }
  EXPECT_FALSE(find_needed_repetitions(Pairing::paired, {0.0001, 0.1, 0.05, 1}, 0.9, 1, 50));
}

}  // namespace
}  // namespace joulemap::statistics
