// SPDX-License-Identifier: Apache-2.0
#include "statistics/mean_interval.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace joulemap::statistics {
namespace {

TEST(MeanInterval, MeanIntervalMatchesTheTextbookForFiveValues) {
  // R: t.test(c(10, 12, 11, 13, 9))$conf.int gives 9.036757 12.963243
  const auto interval = mean_interval(std::vector<double>{10, 12, 11, 13, 9}, 0.95);
  ASSERT_TRUE(interval && interval->half_width);
  EXPECT_DOUBLE_EQ(interval->mean, 11);
  EXPECT_NEAR(*interval->half_width, 1.963243, 1e-6);
}

TEST(MeanInterval, MeanIntervalHasNoSpreadForOneValue) {
  const auto interval = mean_interval(std::vector<double>{3}, 0.95);
  ASSERT_TRUE(interval);
  EXPECT_DOUBLE_EQ(interval->mean, 3);
  EXPECT_FALSE(interval->half_width);
}

TEST(MeanInterval, MeanIntervalHasNoMeanWithoutValues) { EXPECT_FALSE(mean_interval({}, 0.95)); }

TEST(MeanInterval, MeanIntervalHasNominalCoverage) {
  const unsigned seed = 20240601;
  SCOPED_TRACE(seed);
  std::mt19937 generator(seed);
  std::normal_distribution<double> noise(50, 4);
  int coverage_count = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> values(6);
    for (double& value : values) value = noise(generator);
    const auto interval = mean_interval(values, 0.95);
    coverage_count += std::abs(interval->mean - 50) <= *interval->half_width ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(coverage_count) / kTrials, 0.95, 0.012);
}

}  // namespace
}  // namespace joulemap::statistics
