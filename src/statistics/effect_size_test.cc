// SPDX-License-Identifier: Apache-2.0
#include "statistics/effect_size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "statistics/bootstrap.h"
#include "statistics/random.h"
#include "statistics/ranks.h"

namespace joulemap::statistics {
namespace {

std::vector<double> random_values(Random& random, std::size_t n, double centre, bool is_rounded) {
  std::vector<double> values(n);
  for (double& value : values) {
    value = centre + random.normal();
    if (is_rounded) value = std::round(value);
  }
  return values;
}

TEST(A12, A12CountsPairsWhereTheFirstIsGreater) {
  const std::vector<double> first_values{1, 2, 3};
  const std::vector<double> second_values{2, 2, 5};
  EXPECT_DOUBLE_EQ(vargha_delaney_a12(first_values, second_values), (0 + 2 * 0.5 + 2) / 9);
  EXPECT_DOUBLE_EQ(vargha_delaney_a12(first_values, second_values),
                   1 - vargha_delaney_a12(second_values, first_values));
  EXPECT_DOUBLE_EQ(cliffs_delta(first_values, second_values), 2 * vargha_delaney_a12(first_values, second_values) - 1);
  EXPECT_EQ(vargha_delaney_a12(second_values, std::vector<double>{9, 10}), 0);
}

TEST(A12Interval, A12IntervalMirrorsWhenGroupsAreSwappedAndHasWidthAtTheExtremes) {
  const std::vector<double> low{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const std::vector<double> high{11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
  const EffectEstimate low_group_interval = *a12_interval(low, high, 0.95);
  const EffectEstimate high_group_interval = *a12_interval(high, low, 0.95);
  EXPECT_EQ(low_group_interval.low, 0);
  EXPECT_GT(low_group_interval.high, 0.1);
  EXPECT_LT(low_group_interval.high, 0.35);
  EXPECT_NEAR(high_group_interval.low, 1 - low_group_interval.high, 1e-12);
  EXPECT_FALSE(a12_interval(low, {}, 0.95));
}

TEST(A12Interval, A12IntervalHasAboutNominalCoverage) {
  const std::uint64_t seed = 20260106;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  for (const double shift : {0.0, 1.0, 2.5}) {
    const double truth = normal_cdf(shift * M_SQRT1_2);
    int coverage_count = 0;
    constexpr int kTrials = 2000;
    for (int trial = 0; trial < kTrials; ++trial) {
      const EffectEstimate interval =
          *a12_interval(random_values(random, 10, shift, false), random_values(random, 12, 0, false), 0.95);
      coverage_count += interval.low <= truth && truth <= interval.high ? 1 : 0;
    }
    EXPECT_GT(coverage_count, 0.93 * kTrials) << shift;
    EXPECT_LT(coverage_count, 0.985 * kTrials) << shift;
  }
}

TEST(EffectEstimate, ShiftIsTheMedianOfAllPairsForEveryAlgorithm) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const bool is_rounded = random.uniform_below(2) == 0;
    const std::vector<double> first_values = random_values(random, 1 + random.uniform_below(25), 3, is_rounded);
    const std::vector<double> second_values = random_values(random, first_values.size(), 1, is_rounded);
    std::vector<double> walsh_averages;
    std::vector<double> differences;
    for (std::size_t i = 0; i < first_values.size(); ++i) {
      for (std::size_t j = 0; j < first_values.size(); ++j) differences.push_back(first_values[i] - second_values[j]);
      for (std::size_t j = 0; j <= i; ++j)
        walsh_averages.push_back((first_values[i] - second_values[i] + first_values[j] - second_values[j]) / 2);
    }
    EXPECT_NEAR(paired_shift(first_values, second_values, 0.95)->estimate, median_of(walsh_averages), 1e-12);
    EXPECT_NEAR(unpaired_shift(first_values, second_values, 0.95)->estimate, median_of(differences), 1e-12);
    EXPECT_LE(paired_shift(first_values, second_values, 0.95)->low,
              paired_shift(first_values, second_values, 0.95)->estimate);
    EXPECT_GE(paired_shift(first_values, second_values, 0.95)->high,
              paired_shift(first_values, second_values, 0.95)->estimate);
  }
}

TEST(EffectEstimate, ShiftIntervalMirrorsWhenGroupsAreSwapped) {
  Random random(11);
  const std::vector<double> first_values = random_values(random, 20, 30, false);
  const std::vector<double> second_values = random_values(random, 20, 20, false);
  for (const auto shift : {paired_shift, unpaired_shift}) {
    const EffectEstimate forward_shift = *shift(first_values, second_values, 0.9);
    const EffectEstimate reverse_shift = *shift(second_values, first_values, 0.9);
    EXPECT_DOUBLE_EQ(forward_shift.estimate, -reverse_shift.estimate);
    EXPECT_DOUBLE_EQ(forward_shift.low, -reverse_shift.high);
  }
  const double forward_percent = paired_percent(first_values, second_values, 0.9)->estimate;
  const double reverse_percent = paired_percent(second_values, first_values, 0.9)->estimate;
  EXPECT_NEAR((1 + forward_percent / 100) * (1 + reverse_percent / 100), 1, 1e-12);
}

TEST(EffectEstimate, ReportsTooFewValuesForTheConfidence) {
  const std::vector<double> first_values{5, 6, 7, 9};
  const std::vector<double> second_values{1, 1, 1, 1};
  const EffectEstimate paired_estimate = *paired_shift(first_values, second_values, 0.95);
  EXPECT_DOUBLE_EQ(paired_estimate.confidence, 1 - 2.0 / 16);
  EXPECT_EQ(paired_estimate.low, 4);
  EXPECT_EQ(paired_estimate.high, 8);
  const EffectEstimate unpaired_estimate = *unpaired_shift(std::vector<double>{5, 6}, std::vector<double>{1, 2}, 0.95);
  EXPECT_DOUBLE_EQ(unpaired_estimate.confidence, 1 - 2.0 / 6);
}

TEST(EffectEstimate, ShiftIntervalHasAtLeastNominalCoverage) {
  Random random(20260101);
  int paired_coverage_count = 0;
  int unpaired_coverage_count = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::vector<double> first_values = random_values(random, 12, 5, false);
    const std::vector<double> second_values = random_values(random, 12, 3, false);
    const EffectEstimate paired_interval = *paired_shift(first_values, second_values, 0.95);
    const EffectEstimate unpaired_interval = *unpaired_shift(first_values, second_values, 0.95);
    paired_coverage_count += paired_interval.low <= 2 && 2 <= paired_interval.high ? 1 : 0;
    unpaired_coverage_count += unpaired_interval.low <= 2 && 2 <= unpaired_interval.high ? 1 : 0;
  }
  EXPECT_GT(paired_coverage_count, 0.94 * kTrials);
  EXPECT_GT(unpaired_coverage_count, 0.94 * kTrials);
}

TEST(EffectEstimate, HandlesThousandsOfValues) {
  Random random(3);
  const std::vector<double> first_values = random_values(random, 5'000, 10, false);
  const std::vector<double> second_values = random_values(random, 5'000, 8, false);
  EXPECT_NEAR(paired_shift(first_values, second_values, 0.95)->estimate, 2, 0.1);
  const EffectEstimate shift = *unpaired_shift(first_values, second_values, 0.95);
  EXPECT_LT(shift.low, 2);
  EXPECT_GT(shift.high, 2);
  EXPECT_LT(shift.high - shift.low, 0.2);
}

TEST(PercentShift, PercentShiftNeedsPositiveValues) {
  EXPECT_FALSE(paired_percent(std::vector<double>{1, 2}, std::vector<double>{0, 1}, 0.95));
  EXPECT_FALSE(unpaired_percent(std::vector<double>{1, -2}, std::vector<double>{1, 1}, 0.95));
  EXPECT_FALSE(unpaired_percent({}, std::vector<double>{1}, 0.95));
  EXPECT_NEAR(unpaired_percent(std::vector<double>{103, 206}, std::vector<double>{100, 200}, 0.95)->estimate, 3, 1e-9);
}

}  // namespace
}  // namespace joulemap::statistics
