// SPDX-License-Identifier: Apache-2.0
#include "statistics/run_variation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "statistics/random.h"

namespace joulemap::statistics {
namespace {

constexpr VariationPrior kVariationPrior{0.02, 4};
constexpr double kConfidenceLevel = 0.9;
constexpr std::uint64_t kVariationSeed = 20261117;

bool is_beyond_noise(const RunContrast& contrast) {
  const double noise_limit =
      two_sided_t_quantile(kConfidenceLevel, contrast.degrees_of_freedom) * contrast.standard_error();
  return std::abs(contrast.difference()) > noise_limit;
}

std::vector<double> draw_run_values(double mean, double relative_sd, std::size_t count, Random& random) {
  std::vector<double> runs;
  for (std::size_t i = 0; i < count; ++i) runs.push_back(mean * (1 + relative_sd * random.normal()));
  return runs;
}

TEST(RunVariation, OneRunPerSideUsesThePrior) {
  const std::vector<double> runs_a = {10};
  const std::vector<double> runs_b = {10.5};
  const std::vector<double> zero_sds = {0};
  const RunContrast contrast = contrast_runs({runs_a, zero_sds}, {runs_b, zero_sds}, kVariationPrior);
  EXPECT_DOUBLE_EQ(contrast.relative_sd, 0.02);
  EXPECT_DOUBLE_EQ(contrast.degrees_of_freedom, 4);
  EXPECT_NEAR(contrast.standard_error(), 0.02 * std::sqrt(10 * 10 + 10.5 * 10.5), 1e-12);
  EXPECT_FALSE(is_beyond_noise(contrast));
}

TEST(RunVariation, UncertaintyOfARunWidensTheInterval) {
  const std::vector<double> value = {10};
  const std::vector<double> within_run_sds = {0.2};
  const RunContrast contrast = contrast_runs({value, within_run_sds}, {value, within_run_sds}, kVariationPrior);
  EXPECT_NEAR(contrast.relative_sd, std::sqrt(0.02 * 0.02 + 0.02 * 0.02), 1e-12);
}

TEST(RunVariation, RepetitionsUpdateThePrior) {
  const std::vector<double> equal_runs = {10, 10, 10};
  const std::vector<double> spread_runs = {9, 10, 11};
  const std::vector<double> zero_sds = {0, 0, 0};
  EXPECT_LT(contrast_runs({equal_runs, zero_sds}, {equal_runs, zero_sds}, kVariationPrior).relative_sd, 0.02);
  EXPECT_GT(contrast_runs({spread_runs, zero_sds}, {spread_runs, zero_sds}, kVariationPrior).relative_sd, 0.06);
  EXPECT_DOUBLE_EQ(contrast_runs({equal_runs, zero_sds}, {equal_runs, zero_sds}, kVariationPrior).degrees_of_freedom,
                   8);
}

TEST(RunVariation, AGroupWithoutRunsHasMeanZero) {
  const std::vector<double> value = {10};
  const std::vector<double> within_run_sds = {0.1};
  const RunContrast contrast = contrast_runs({}, {value, within_run_sds}, kVariationPrior);
  EXPECT_DOUBLE_EQ(contrast.difference(), 10);
  EXPECT_GT(contrast.standard_error(), 0);
}

TEST(RunVariation, QuantilesMatchTables) {
  EXPECT_NEAR(two_sided_t_quantile(0.9, 4), 2.1318, 1e-4);
  EXPECT_NEAR(two_sided_t_quantile(0.9, 8), 1.8595, 1e-4);
  EXPECT_NEAR(p_value_of_t_ratio(2.1318, 4), 0.1, 1e-5);
}

TEST(RunVariation, UnchangedProgramsWithPriorVariationAreRarelyReportedAsChanged) {
  RecordProperty("seed", std::to_string(kVariationSeed));
  for (const std::size_t runs : {1, 3, 5}) {
    Random random(kVariationSeed + runs);
    const std::vector<double> zero_sds(runs, 0.0);
    int false_alarm_count = 0;
    for (int pair = 0; pair < 2000; ++pair) {
      const std::vector<double> runs_a = draw_run_values(10, 0.02, runs, random);
      const std::vector<double> runs_b = draw_run_values(10, 0.02, runs, random);
      false_alarm_count +=
          is_beyond_noise(contrast_runs({runs_a, zero_sds}, {runs_b, zero_sds}, kVariationPrior)) ? 1 : 0;
    }
    EXPECT_LE(false_alarm_count, 200) << runs << " runs a side, seed " << kVariationSeed + runs;
  }
}

TEST(RunVariation, TheSmallestDetectableChangeIsFoundWithPower80Percent) {
  for (const std::size_t runs : {1, 3, 5}) {
    Random random(kVariationSeed + 10 + runs);
    const std::vector<double> zero_sds(runs, 0.0);
    const double freedom = kVariationPrior.degrees_of_freedom + 2 * static_cast<double>(runs - 1);
    const double change = smallest_detectable_change(0.02, freedom, runs, runs, kConfidenceLevel);
    int detection_count = 0;
    for (int pair = 0; pair < 2000; ++pair) {
      const std::vector<double> runs_a = draw_run_values(10, 0.02, runs, random);
      const std::vector<double> runs_b = draw_run_values(10 * (1 + change), 0.02, runs, random);
      detection_count +=
          is_beyond_noise(contrast_runs({runs_a, zero_sds}, {runs_b, zero_sds}, kVariationPrior)) ? 1 : 0;
    }
    EXPECT_GE(detection_count, 1550) << runs << " runs a side, seed " << kVariationSeed + 10 + runs;
  }
}

TEST(RunVariation, MoreRunsEstablishSmallerChanges) {
  const double change_with_one_run = smallest_detectable_change(0.02, 4, 1, 1, kConfidenceLevel);
  const double change_with_three_runs = smallest_detectable_change(0.02, 8, 3, 3, kConfidenceLevel);
  const double change_with_five_runs = smallest_detectable_change(0.02, 12, 5, 5, kConfidenceLevel);
  EXPECT_GT(change_with_one_run, change_with_three_runs);
  EXPECT_GT(change_with_three_runs, change_with_five_runs);
}

}  // namespace
}  // namespace joulemap::statistics
