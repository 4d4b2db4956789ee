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
std::vector<double> small_integers(Random& random, std::size_t n, std::size_t different) {
  std::vector<double> values(n);
  for (double& value : values)
    value = static_cast<double>(random.uniform_below(different)) - static_cast<double>(different / 2);
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
    const auto less = std::ranges::count_if(values, [&](double other) { return other < value; });
    ranks.push_back(static_cast<double>(less) + (static_cast<double>(std::ranges::count(values, value)) + 1) / 2);
  }
  return ranks;
}

double enumerated_signed_rank_p(std::vector<double> differences, ZeroDifferences zeros) {
  if (zeros == ZeroDifferences::drop) std::erase(differences, 0.0);
  std::vector<double> sizes;
  for (const double d : differences) sizes.push_back(std::abs(d));
  const std::vector<double> ranks = midranks_by_counting(sizes);
  double observed = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    observed += differences[i] > 0 ? ranks[i] : differences[i] < 0 ? -ranks[i] : 0;
  }
  int far = 0;
  for (unsigned signs = 0; signs < 1U << ranks.size(); ++signs) {
    double sum = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (differences[i] != 0) sum += (signs >> i & 1U) != 0 ? ranks[i] : -ranks[i];
    }
    far += std::abs(sum) >= std::abs(observed) ? 1 : 0;
  }
  return far / std::exp2(static_cast<double>(ranks.size()));
}

double enumerated_rank_sum_p(const std::vector<double>& first, const std::vector<double>& second) {
  std::vector<double> all = first;
  all.insert(all.end(), second.begin(), second.end());
  const std::vector<double> ranks = midranks_by_counting(all);
  const double mean = static_cast<double>(first.size()) * (static_cast<double>(all.size()) + 1) / 2;
  const auto distance = [&](unsigned chosen) {
    double sum = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) sum += (chosen >> i & 1U) != 0 ? ranks[i] : 0;
    return std::abs(sum - mean);
  };
  const double observed = distance((1U << first.size()) - 1);
  double far = 0;
  double ways = 0;
  for (unsigned chosen = 0; chosen < 1U << all.size(); ++chosen) {
    if (static_cast<std::size_t>(std::popcount(chosen)) != first.size()) continue;
    ways += 1;
    far += distance(chosen) >= observed ? 1 : 0;
  }
  return far / ways;
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
    const std::size_t different = 2 + random.uniform_below(15);
    const std::vector<double> first = small_integers(random, 1 + random.uniform_below(7), different);
    const std::vector<double> second = small_integers(random, 1 + random.uniform_below(7), different);
    EXPECT_NEAR(rank_sum_test(first, second).p, enumerated_rank_sum_p(first, second), 1e-12);
  }
}

TEST(RankTests, RankTestsAreInvariantToSwapAndShift) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const std::size_t n = 2 + random.uniform_below(40);
    const std::vector<double> first = small_integers(random, n, 20);
    const std::vector<double> second = small_integers(random, n, 25);
    EXPECT_EQ(signed_rank_test(first, second).p, signed_rank_test(second, first).p);
    EXPECT_NEAR(rank_sum_test(first, second).p, rank_sum_test(second, first).p, 1e-12);
    EXPECT_EQ(signed_rank_test(first, second).p, signed_rank_test(shift_values(first, 7), shift_values(second, 7)).p);
    EXPECT_EQ(rank_sum_test(first, second).p, rank_sum_test(shift_values(first, 7), shift_values(second, 7)).p);
    const std::vector<std::vector<double>> groups{first, second};
    const std::vector<std::vector<double>> swapped{second, shift_values(first, 0)};
    EXPECT_NEAR(kruskal_wallis_test(groups).p, kruskal_wallis_test(swapped).p, 1e-12);
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
  const TestResult within = signed_rank_test(exact);
  exact.push_back(1e-9);  // a difference of the lowest rank hardly changes the statistic
  const TestResult beyond = signed_rank_test(exact);
  EXPECT_EQ(within.p_value_method, PValueMethod::exact);
  EXPECT_EQ(beyond.p_value_method, PValueMethod::normal);
  EXPECT_NEAR(within.p, beyond.p, 0.01);

  std::vector<double> first(60);
  std::vector<double> second(60);
  for (double& value : first) value = random.normal() + 0.3;
  for (double& value : second) value = random.normal();
  const TestResult approximate = rank_sum_test(first, second);
  EXPECT_EQ(approximate.p_value_method, PValueMethod::normal);
  EXPECT_GT(approximate.p, 0);
}

TEST(RankTests, RankTestsAreNotSignificantForEmptyOrEqualValues) {
  const std::vector<double> none;
  const std::vector<double> equal(6, 3.0);
  EXPECT_EQ(signed_rank_test(none).p, 1);
  EXPECT_EQ(signed_rank_test(equal, equal).p, 1);
  EXPECT_EQ(signed_rank_test(equal, equal).n, 0U);
  EXPECT_EQ(rank_sum_test(equal, equal).p, 1);
  EXPECT_EQ(rank_sum_test(equal, none).p, 1);
  const std::vector<std::vector<double>> groups{equal, equal, equal};
  EXPECT_EQ(kruskal_wallis_test(groups).p, 1);
  EXPECT_EQ(friedman_test(groups).p, 1);
  EXPECT_EQ(friedman_test({}).p, 1);
  EXPECT_EQ(kruskal_wallis_test({}).p, 1);
}

TEST(FriedmanTest, FriedmanTestUsesOnlyTheOrderWithinABlock) {
  const std::vector<std::vector<double>> blocks{{1, 2, 3}, {10, 20, 31}, {5, 6, 9}, {7, 9, 8}};
  std::vector<std::vector<double>> shifted = blocks;
  for (std::size_t b = 0; b < shifted.size(); ++b)
    shifted[b] = shift_values(shifted[b], 1000.0 * static_cast<double>(b));
  EXPECT_EQ(friedman_test(blocks).p, friedman_test(shifted).p);
  EXPECT_NEAR(friedman_test(blocks).statistic, 6.5, 1e-12);
}

}  // namespace
}  // namespace joulemap::statistics
