// SPDX-License-Identifier: Apache-2.0
#include "statistics/bootstrap.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "statistics/random.h"

namespace joulemap::statistics {
namespace {

std::vector<double> draw_skewed_values(Random& random, std::size_t n) {
  std::vector<double> values(n);
  for (double& value : values) value = random.exponential();
  return values;
}

TEST(Bootstrap, GivesTheSameBitsForAnyThreadCount) {
  Random random(7);
  std::vector<std::vector<double>> cells;
  for (std::size_t n = 0; n < 13; ++n) cells.push_back(draw_skewed_values(random, n));
  BootstrapOptions options;
  options.resamples = 500;
  for (const CentralTendency centre : {CentralTendency::mean, CentralTendency::median}) {
    const auto single_threaded_result = bootstrap_cells(cells, centre, options, 1);
    const auto multithreaded_result = bootstrap_cells(cells, centre, options, 5);
    ASSERT_EQ(single_threaded_result.size(), multithreaded_result.size());
    EXPECT_FALSE(single_threaded_result[0]);
    for (std::size_t i = 1; i < single_threaded_result.size(); ++i) {
      EXPECT_EQ(single_threaded_result[i]->low, multithreaded_result[i]->low);
      EXPECT_EQ(single_threaded_result[i]->high, multithreaded_result[i]->high);
    }
  }
}

TEST(Bootstrap, GenericAndSpecializedMeanAndMedianAgree) {
  Random random(8);
  for (const std::size_t n : {5U, 8U, 31U}) {
    std::vector<double> values = draw_skewed_values(random, n);
    std::ranges::sort(values);  // bootstrap_median resamples sorted values
    const BootstrapInterval mean = *bootstrap_mean(values);
    const BootstrapInterval generic_mean_interval = *bootstrap(values, mean_of);
    EXPECT_NEAR(mean.low, generic_mean_interval.low, 1e-12);
    EXPECT_NEAR(mean.high, generic_mean_interval.high, 1e-12);
    const BootstrapInterval median = *bootstrap_median(values);
    const BootstrapInterval generic_median_interval = *bootstrap(values, median_of);
    EXPECT_NEAR(median.low, generic_median_interval.low, 1e-9);
    EXPECT_NEAR(median.high, generic_median_interval.high, 1e-9);
  }
}

TEST(Bootstrap, BootstrapReportsFallbackToPercentiles) {
  const BootstrapInterval constant_interval = *bootstrap_mean(std::vector<double>(9, 4.0));
  EXPECT_TRUE(constant_interval.is_degenerate);
  EXPECT_EQ(constant_interval.low, 4);
  EXPECT_EQ(constant_interval.high, 4);
  EXPECT_TRUE(bootstrap_mean(std::vector<double>{4})->is_degenerate);
  EXPECT_FALSE(bootstrap_mean(std::vector<double>{4, 5, 7})->is_degenerate);
  const auto sample_minimum = [](std::span<const double> values) { return *std::ranges::min_element(values); };
  const BootstrapInterval minimum_interval = *bootstrap(std::vector<double>{1, 2, 3, 4, 5}, sample_minimum);
  EXPECT_GE(minimum_interval.low, 1);
  EXPECT_FALSE(bootstrap_median({}));
}

TEST(Bootstrap, BootstrapNearlyReachesNominalCoverageForASkewedDistribution) {
  Random random(20260102);
  BootstrapOptions options;
  options.resamples = 1'000;
  int coverage_count = 0;
  constexpr int kTrials = 600;
  for (int trial = 0; trial < kTrials; ++trial) {
    options.seed = static_cast<std::uint64_t>(trial);
    const BootstrapInterval interval = *bootstrap_mean(draw_skewed_values(random, 30), options);
    coverage_count += interval.low <= 1 && 1 <= interval.high ? 1 : 0;
  }
  EXPECT_GT(coverage_count, 0.89 * kTrials);
  EXPECT_LT(coverage_count, 0.98 * kTrials);
}

TEST(Bootstrap, BootstrapIntervalIsEquivariantToShifts) {
  Random random(9);
  const std::vector<double> values = draw_skewed_values(random, 20);
  std::vector<double> shifted_values = values;
  for (double& value : shifted_values) value += 64;
  EXPECT_NEAR(bootstrap_mean(values)->low + 64, bootstrap_mean(shifted_values)->low, 1e-9);
  EXPECT_NEAR(bootstrap_median(values)->high + 64, bootstrap_median(shifted_values)->high, 1e-9);
}

}  // namespace
}  // namespace joulemap::statistics
