// SPDX-License-Identifier: Apache-2.0
#include "recording/kernel_power_library.h"

#include <gtest/gtest.h>

#include <limits>

namespace joulemap::recording {
namespace {

ObservedKernels make_kernel_observation(std::string name, double time_s = 1) {
  return {{KernelKind::kernel, std::move(name), 18}, 132, 256, time_s, 1000};
}

TEST(KernelPower, SizesWithinAFactorOfTwoShareACode) {
  const KernelClass class_of_130_blocks{1, KernelKind::kernel, "add", {130, 1, 1}, {256, 1, 1}};
  const KernelClass class_of_250_blocks{2, KernelKind::kernel, "add", {250, 1, 1}, {256, 1, 1}};
  const KernelClass class_of_1000_blocks{3, KernelKind::kernel, "add", {1000, 1, 1}, {256, 1, 1}};
  EXPECT_EQ(kernel_key_of(class_of_130_blocks), kernel_key_of(class_of_250_blocks));
  EXPECT_NE(kernel_key_of(class_of_130_blocks), kernel_key_of(class_of_1000_blocks));
}

TEST(KernelPower, FindingsAreWeightedByPrecision) {
  KernelPower kernel_power = make_measured_entry("H200", make_kernel_observation("add", 9), 400, 0.02);
  merge_kernel_power(kernel_power, make_measured_entry("H200", make_kernel_observation("add", 1), 500, 0.04));
  EXPECT_NEAR(kernel_power.watts, 420, 1e-9);  // the first finding has four times the precision of the second
  EXPECT_EQ(kernel_power.recordings, 2U);
  EXPECT_NEAR(kernel_power.measured_kernel_s, 10, 1e-12);
}

TEST(KernelPower, DisagreeingFindingsWidenTheUncertainty) {
  KernelPower consistent_kernel_power = make_measured_entry("H200", make_kernel_observation("add"), 400, 0.02);
  KernelPower inconsistent_kernel_power = consistent_kernel_power;
  for (int i = 0; i < 5; ++i) {
    merge_kernel_power(consistent_kernel_power, make_measured_entry("H200", make_kernel_observation("add"), 402, 0.02));
    merge_kernel_power(inconsistent_kernel_power,
                       make_measured_entry("H200", make_kernel_observation("add"), i % 2 == 0 ? 520 : 400, 0.02));
  }
  EXPECT_LT(predictive_relative_sd(consistent_kernel_power),
            predictive_relative_sd(make_measured_entry("H200", make_kernel_observation("add"), 400, 0.02)));
  EXPECT_GT(predictive_relative_sd(inconsistent_kernel_power), 0.1);
}

TEST(KernelPower, ABorrowedPowerHasTheGivenUncertainty) {
  EXPECT_NEAR(
      predictive_relative_sd(make_entry_from_similar_kernels("H200", make_kernel_observation("add"), 400, 0.25)), 0.25,
      1e-12);
}

TEST(KernelLibrary, ContainsEachCodeOfAGpuOnce) {
  std::vector<KernelPower> library;
  merge_into_kernel_library(library, {make_measured_entry("H200", make_kernel_observation("b"), 300, 0.02),
                                      make_measured_entry("H200", make_kernel_observation("a"), 400, 0.02)});
  merge_into_kernel_library(library, {make_measured_entry("H200", make_kernel_observation("b"), 310, 0.02),
                                      make_measured_entry("A100", make_kernel_observation("b"), 200, 0.02)});
  ASSERT_EQ(library.size(), 3U);
  const KernelPower* const matching_entry = find_kernel_power(library, "H200", make_kernel_observation("b").kernel_key);
  ASSERT_NE(matching_entry, nullptr);
  EXPECT_EQ(matching_entry->recordings, 2U);
  EXPECT_NEAR(find_kernel_power(library, "A100", make_kernel_observation("b").kernel_key)->watts, 200, 1e-9);
  EXPECT_EQ(find_kernel_power(library, "A100", make_kernel_observation("a").kernel_key), nullptr);
}

TEST(KernelLibrary, DropsEntriesWithTheLeastEvidence) {
  std::vector<KernelPower> library;
  std::vector<KernelPower> findings;
  for (int i = 0; i < 10; ++i)
    findings.push_back(make_measured_entry("H200", make_kernel_observation("k" + std::to_string(i), 1 + i), 300, 0.02));
  findings.push_back(make_measured_entry("A100", make_kernel_observation("only", 0.001), 300, 0.02));
  EXPECT_EQ(merge_into_kernel_library(library, findings, 4), 6U);
  ASSERT_EQ(library.size(), 5U);
  EXPECT_EQ(find_kernel_power(library, "H200", make_kernel_observation("k5").kernel_key), nullptr);
  EXPECT_NE(find_kernel_power(library, "H200", make_kernel_observation("k6").kernel_key), nullptr);
  EXPECT_NE(find_kernel_power(library, "A100", make_kernel_observation("only").kernel_key), nullptr);
}

TEST(KernelPower, StaysValidForAnyCount) {
  KernelPower kernel_power = make_measured_entry("H200", make_kernel_observation("add"), 400, 1e-6);
  for (int i = 0; i < 3; ++i) {
    merge_kernel_power(kernel_power, make_measured_entry("H200", make_kernel_observation("add"), 500, 1e-6));
    merge_kernel_power(kernel_power, KernelPower(kernel_power));
    EXPECT_TRUE(is_valid_kernel_power(kernel_power));
  }
  kernel_power.recordings = std::numeric_limits<std::uint64_t>::max();
  EXPECT_FALSE(is_valid_kernel_power(kernel_power));
  merge_kernel_power(kernel_power, KernelPower(kernel_power));
  EXPECT_FALSE(kernel_power.is_from_similar_kernels());
}

TEST(KernelPower, UncertaintyIsBounded) {
  KernelPower extreme_kernel_power = make_measured_entry("H200", make_kernel_observation("add"), 400, 0.02);
  extreme_kernel_power.recordings = 1'000'000'000'000;
  extreme_kernel_power.cochran_q = 1e12;
  extreme_kernel_power.sum_of_squared_precisions =
      extreme_kernel_power.precision * extreme_kernel_power.precision * 0.999999999999;
  EXPECT_TRUE(is_valid_kernel_power(extreme_kernel_power));
  EXPECT_LE(predictive_relative_sd(extreme_kernel_power), 10);
  EXPECT_GE(predictive_relative_sd(extreme_kernel_power), 1e-4);
  extreme_kernel_power.watts = 1e-300;
  EXPECT_FALSE(is_valid_kernel_power(extreme_kernel_power));
}

TEST(KernelPower, ImpossibleValuesAreInvalid) {
  KernelPower valid_kernel_power = make_measured_entry("H200", make_kernel_observation("add"), 400, 0.02);
  EXPECT_TRUE(is_valid_kernel_power(valid_kernel_power));
  for (const double invalid_value :
       {-1.0, 0.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    KernelPower invalid_kernel_power = valid_kernel_power;
    invalid_kernel_power.watts = invalid_value;
    EXPECT_FALSE(is_valid_kernel_power(invalid_kernel_power)) << invalid_value;
    invalid_kernel_power = valid_kernel_power;
    invalid_kernel_power.precision = invalid_value;
    EXPECT_FALSE(is_valid_kernel_power(invalid_kernel_power)) << invalid_value;
  }
}

}  // namespace
}  // namespace joulemap::recording
