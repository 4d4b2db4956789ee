// SPDX-License-Identifier: Apache-2.0
#include "statistics/correlation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "statistics/adjustment.h"
#include "statistics/random.h"

namespace joulemap::statistics {
namespace {

std::vector<double> random_values(Random& random, std::size_t n, std::size_t distinct_value_count) {
  std::vector<double> values(n);
  for (double& value : values) value = static_cast<double>(random.uniform_below(distinct_value_count));
  return values;
}

// Fraction of all permutations of y whose coefficient is at least as far from 0.
template <class Coefficient>
double enumerated_p(const std::vector<double>& x, const std::vector<double>& y, Coefficient coefficient) {
  std::vector<std::size_t> order(y.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const double observed_coefficient = std::abs(coefficient(x, y));
  double extreme_count = 0;
  double permutation_count = 0;
  do {
    std::vector<double> permuted_y;
    for (const std::size_t i : order) permuted_y.push_back(y[i]);
    permutation_count += 1;
    extreme_count += std::abs(coefficient(x, permuted_y)) >= observed_coefficient - 1e-9 ? 1 : 0;
  } while (std::ranges::next_permutation(order).found);
  return extreme_count / permutation_count;
}

double pearson_of_ranks(const std::vector<double>& x, const std::vector<double>& y) {
  const auto ranks_x = midranks(x).doubled_ranks;
  const auto ranks_y = midranks(y).doubled_ranks;
  const auto mean = static_cast<double>(x.size() + 1);
  double product_sum = 0;
  double x_square_sum = 0;
  double y_square_sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double x_deviation = static_cast<double>(ranks_x[i]) - mean;
    const double y_deviation = static_cast<double>(ranks_y[i]) - mean;
    product_sum += x_deviation * y_deviation;
    x_square_sum += x_deviation * x_deviation;
    y_square_sum += y_deviation * y_deviation;
  }
  return product_sum / std::sqrt(x_square_sum * y_square_sum);
}

double kendall_s_statistic(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double product = (x[i] - x[j]) * (y[i] - y[j]);
      sum += product > 0 ? 1 : product < 0 ? -1 : 0;
    }
  }
  return sum;
}

TEST(RankCorrelations, RankCorrelationsMatchEnumerationOfAllPermutations) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const std::size_t n = 3 + random.uniform_below(4);
    const std::vector<double> x = random_values(random, n, 2 + random.uniform_below(50));
    const std::vector<double> y = random_values(random, n, 2 + random.uniform_below(50));
    const auto rho = spearman(x, y);
    const auto tau = kendall(x, y);
    ASSERT_EQ(rho.has_value(), tau.has_value());
    if (!rho) continue;
    EXPECT_NEAR(rho->statistic, pearson_of_ranks(x, y), 1e-12);
    EXPECT_NEAR(rho->p, enumerated_p(x, y, pearson_of_ranks), 1e-12);
    EXPECT_NEAR(tau->p, enumerated_p(x, y, kendall_s_statistic), 1e-12);
  }
}

TEST(RankCorrelations, RankCorrelationsAreOneForAnyMonotonicRelation) {
  std::vector<double> x;
  std::vector<double> y;
  for (int i = 0; i < 30; ++i) {
    x.push_back(i);
    y.push_back(std::exp(0.5 * i));
  }
  EXPECT_DOUBLE_EQ(spearman(x, y)->statistic, 1);
  EXPECT_GT(spearman(x, y)->p, 0);
  EXPECT_DOUBLE_EQ(kendall(x, y)->statistic, 1);
  std::ranges::reverse(y);
  EXPECT_DOUBLE_EQ(spearman(x, y)->statistic, -1);
  EXPECT_DOUBLE_EQ(kendall(x, y)->statistic, -1);
}

TEST(RankCorrelations, RankCorrelationsDoNotExistWithoutSpread) {
  const std::vector<double> constant(8, 1.0);
  const std::vector<double> increasing_values{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_FALSE(spearman(constant, increasing_values));
  EXPECT_FALSE(kendall(increasing_values, constant));
  EXPECT_FALSE(kendall({}, {}));
  EXPECT_FALSE(spearman(std::vector<double>{1}, std::vector<double>{2}));
}

TEST(Adjustment, PValueAdjustmentPreservesOrderAndSkipsNan) {
  const std::vector<double> p{0.04, std::nan(""), 0.01, 0.03};
  const std::vector<double> holm = adjusted_p_values(p, Adjustment::holm);
  EXPECT_DOUBLE_EQ(holm[2], 0.03);
  EXPECT_DOUBLE_EQ(holm[3], 0.06);
  EXPECT_DOUBLE_EQ(holm[0], 0.06);
  EXPECT_TRUE(std::isnan(holm[1]));
  EXPECT_DOUBLE_EQ(adjusted_p_values(p, Adjustment::bonferroni)[0], 0.12);
  EXPECT_DOUBLE_EQ(adjusted_p_values(p, Adjustment::benjamini_hochberg)[3], 0.04);
  EXPECT_EQ(adjusted_p_values(p, Adjustment::none)[0], 0.04);
  EXPECT_EQ(parse_adjustment("bh"), Adjustment::benjamini_hochberg);
  EXPECT_FALSE(parse_adjustment("sidak"));
}

}  // namespace
}  // namespace joulemap::statistics
