// SPDX-License-Identifier: Apache-2.0
#include "statistics/series.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "statistics/random.h"

namespace joulemap::statistics {
namespace {

std::vector<double> noise(Random& random, std::size_t n) {
  std::vector<double> values(n);
  for (double& value : values) value = 100 + random.normal();
  return values;
}

TEST(ChangePoint, FindsTheChangePointOfThePublishedRunThatWarmedUp) {
  // Run times in seconds of ten repetitions of one published inference experiment, in order.
  const std::vector<double> times{336, 216, 217, 205, 66, 20, 19, 19, 19, 19};
  const auto change = find_warm_up_end(times, 0.05);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->first_after_change, 5U);
  EXPECT_EQ(change->median_before, 216);
  EXPECT_EQ(change->median_after, 19);
  EXPECT_LT(change->test.p, 0.02);
  EXPECT_LT(mann_kendall_trend(times).test.p, 0.01);
}

TEST(ChangePoint, ChangePointTestHasFalsePositiveRateAlphaInNoise) {
  Random random(20260103);
  int false_alarm_count = 0;
  constexpr int kTrials = 1000;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::vector<double> values = noise(random, 12);
    false_alarm_count += find_change_point(values, static_cast<std::uint64_t>(trial))->test.p <= 0.05 ? 1 : 0;
  }
  EXPECT_LE(false_alarm_count, 0.05 * kTrials + 2 * std::sqrt(0.05 * 0.95 * kTrials));
}

TEST(ChangePoint, ChangePointTestIsExactForFewValues) {
  // Of all 720 permutations of six values, 2 x 3! x 3! are as extreme: those with the three smallest in front, or
  // behind.
  const auto change = find_change_point(std::vector<double>{9, 8, 7, 3, 2, 1});
  EXPECT_EQ(change->test.p_value_method, PValueMethod::exact);
  EXPECT_DOUBLE_EQ(change->test.p, 72.0 / 720);
  EXPECT_EQ(change->first_after_change, 3U);
}

TEST(ChangePoint, LateChangesAreNoWarmUp) {
  std::vector<double> values(20, 5);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += 0.01 * static_cast<double>(i % 3) + (i >= 15 ? 10 : 0);
  ASSERT_LT(find_change_point(values)->test.p, 0.05);
  EXPECT_FALSE(find_warm_up_end(values, 0.05));
  EXPECT_FALSE(find_change_point(std::vector<double>{1}));
  EXPECT_EQ(find_change_point(std::vector<double>(12, 3.0))->test.p, 1);
}

TEST(MannKendall, FindsADriftAndItsSlope) {
  Random random(4);
  std::vector<double> values = noise(random, 30);
  EXPECT_GT(mann_kendall_trend(values).test.p, 0.05);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += 0.5 * static_cast<double>(i);
  const Trend trend = mann_kendall_trend(values);
  EXPECT_LT(trend.test.p, 1e-6);
  EXPECT_NEAR(trend.slope, 0.5, 0.1);
  EXPECT_NEAR(trend.relative_slope, 0.5 / 107, 0.001);
  std::ranges::reverse(values);
  EXPECT_EQ(mann_kendall_trend(values).test.p, trend.test.p);
  EXPECT_DOUBLE_EQ(mann_kendall_trend(values).slope, -trend.slope);
}

TEST(MannKendall, TrendTestIsNotSignificantForConstantValues) {
  const Trend trend = mann_kendall_trend(std::vector<double>(7, 2.0));
  EXPECT_EQ(trend.test.p, 1);
  EXPECT_EQ(trend.tau, 0);
  EXPECT_EQ(trend.slope, 0);
  EXPECT_EQ(mann_kendall_trend({}).test.p, 1);
}

TEST(Outliers, OutliersAreFoundByBothRulesAndInConstantData) {
  const std::vector<double> values{10, 11, 9, 10.5, 9.5, 10.2, 30};
  EXPECT_EQ(find_modified_z_outliers(values), std::vector<std::size_t>{6});
  EXPECT_EQ(find_tukey_outliers(values), std::vector<std::size_t>{6});
  std::vector<double> constant(20, 5);
  EXPECT_TRUE(find_modified_z_outliers(constant).empty());
  EXPECT_TRUE(find_tukey_outliers(constant).empty());
  constant[3] = 6;
  EXPECT_EQ(find_modified_z_outliers(constant), std::vector<std::size_t>{3});
  EXPECT_EQ(find_tukey_outliers(constant), std::vector<std::size_t>{3});
}

}  // namespace
}  // namespace joulemap::statistics
