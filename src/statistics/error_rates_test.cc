// SPDX-License-Identifier: Apache-2.0
//
// Simulates families of six comparisons with ten repetitions each: the family-wise error rate is at most alpha, and a
// difference of 3 % at 1 % noise is detected.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "statistics/adjustment.h"
#include "statistics/random.h"
#include "statistics/rank_tests.h"

namespace joulemap::statistics {
namespace {

constexpr std::size_t kExperimentCount = 1'000;
constexpr std::size_t kFamilySize = 6;
constexpr double kAlpha = 0.05;

enum class SampleDesign { paired, unpaired };

std::vector<double> family_p_values(Random& random, SampleDesign design, double difference_of_first) {
  std::vector<double> p_values;
  for (std::size_t cell = 0; cell < kFamilySize; ++cell) {
    std::vector<double> first_values(10);
    std::vector<double> second_values(10);
    for (double& value : first_values) value = (cell == 0 ? 1 + difference_of_first : 1) + 0.01 * random.normal();
    for (double& value : second_values) value = 1 + 0.01 * random.normal();
    p_values.push_back(design == SampleDesign::paired ? signed_rank_test(first_values, second_values).p
                                                      : rank_sum_test(first_values, second_values).p);
  }
  return adjusted_p_values(p_values, Adjustment::holm);
}

class ErrorRates : public testing::TestWithParam<SampleDesign> {};

TEST_P(ErrorRates, FamilyWiseErrorRateIsAtMostAlpha) {
  const std::uint64_t seed = 20260104;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  double false_alarm_count = 0;
  for (std::size_t i = 0; i < kExperimentCount; ++i) {
    const std::vector<double> p = family_p_values(random, GetParam(), 0);
    false_alarm_count += std::ranges::any_of(p, [](double p_value) { return p_value <= kAlpha; }) ? 1 : 0;
  }
  const double standard_error = std::sqrt(kAlpha * (1 - kAlpha) / kExperimentCount);
  EXPECT_LE(false_alarm_count / kExperimentCount, kAlpha + 2 * standard_error);
  EXPECT_GT(false_alarm_count, 0);
}

TEST_P(ErrorRates, TenRepetitionsDetectThreePercentAtOnePercentNoise) {
  const std::uint64_t seed = 20260105;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  double detection_count = 0;
  for (std::size_t i = 0; i < kExperimentCount; ++i)
    detection_count += family_p_values(random, GetParam(), 0.03)[0] <= kAlpha ? 1 : 0;
  EXPECT_GE(detection_count / kExperimentCount, 0.9);
}

INSTANTIATE_TEST_SUITE_P(Designs, ErrorRates, testing::Values(SampleDesign::paired, SampleDesign::unpaired),
                         [](const auto& design) {
                           return design.param == SampleDesign::paired ? "Paired" : "Unpaired";
                         });

}  // namespace
}  // namespace joulemap::statistics
