// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/steady_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "statistics/random.h"

namespace joulemap::attribution {
namespace {

constexpr std::uint64_t kSteadySeed = 24;

// Steps of 10 ms after two seconds of start-up.
std::vector<StepEnergy> make_steps_with_energy(std::size_t count, const std::function<double(std::size_t)>& energy_j) {
  std::vector<StepEnergy> steps;
  for (std::size_t i = 0; i < count; ++i) {
    const double begin_s = 2 + 0.01 * static_cast<double>(i);
    steps.push_back({begin_s, begin_s + 0.01, 0.01, energy_j(i)});
  }
  return steps;
}

TEST(SteadyState, EqualStepsAreSteadyFromTheFirstToTheLastButOne) {
  const auto steady =
      find_steady_state(make_steps_with_energy(400, [](std::size_t i) { return i == 399 ? 30.0 : 5.0; }));
  ASSERT_TRUE(steady);
  EXPECT_EQ(steady->first_step, 0u);
  EXPECT_EQ(steady->steps, 399u);
  EXPECT_DOUBLE_EQ(steady->energy_j, 5);
  EXPECT_NEAR(steady->standard_error_j, 0, 1e-9);
  EXPECT_DOUBLE_EQ(steady->begin_s, 2);
  EXPECT_NEAR(steady->end_s, 2 + 3.99, 1e-9);
  EXPECT_TRUE(steady->is_settled);
}

TEST(SteadyState, ExcludesWarmUpOfAnyShape) {
  statistics::Random random(kSteadySeed);
  const auto noise = [&] { return 0.05 * random.normal(); };
  const auto first_calls_energy_j = [&](std::size_t i) { return (i < 3 ? 400.0 : 5.0) + noise(); };
  const auto tuning_energy_j = [&](std::size_t i) { return (i < 60 ? 9.0 : 5.0) + noise(); };
  const auto rising_power_energy_j = [&](std::size_t i) {
    return 5 - 2 * std::exp(-static_cast<double>(i) / 20) + noise();
  };
  for (const auto& energy_j :
       std::vector<std::function<double(std::size_t)>>{first_calls_energy_j, tuning_energy_j, rising_power_energy_j}) {
    const auto steady = find_steady_state(make_steps_with_energy(500, energy_j));
    ASSERT_TRUE(steady);
    EXPECT_GT(steady->first_step, 0u);
    EXPECT_LT(steady->first_step, 150u);
    EXPECT_NEAR(steady->energy_j, 5, 0.03) << "seed " << kSteadySeed;
    EXPECT_TRUE(steady->is_settled);
  }
}

TEST(SteadyState, ExcludesRareLongStepsAndIncludesFrequentOnes) {
  statistics::Random random(kSteadySeed);
  const auto find_with_long_steps = [&](std::size_t long_step_period) {
    return find_steady_state(make_steps_with_energy(1000, [&](std::size_t i) {
      return (i % long_step_period == long_step_period - 1 ? 15.0 : 5.0) + 0.05 * random.normal();
    }));
  };
  const auto with_checkpoint_steps = find_with_long_steps(250);
  EXPECT_EQ(with_checkpoint_steps->outlier_steps, 3u);  // one of the four is the last step
  EXPECT_NEAR(with_checkpoint_steps->energy_j, 5, 0.02);
  const auto with_accumulation_steps = find_with_long_steps(8);
  EXPECT_EQ(with_accumulation_steps->outlier_steps, 0u);
  EXPECT_NEAR(with_accumulation_steps->energy_j, 5 + 10.0 / 8, 0.15);
}

TEST(SteadyState, ABriefDisturbanceDoesNotMoveTheMean) {
  statistics::Random random(kSteadySeed);
  const auto steady = find_steady_state(make_steps_with_energy(
      1000, [&](std::size_t i) { return (i >= 600 && i < 640 ? 8.0 : 5.0) + 0.05 * random.normal(); }));
  EXPECT_NEAR(steady->energy_j, 5, 0.02);
}

TEST(SteadyState, CorrelatedStepsWidenTheStandardError) {
  statistics::Random random(kSteadySeed);
  std::vector<double> white_noise_j;
  std::vector<double> correlated_noise_j;
  double state = 0;
  for (int i = 0; i < 2000; ++i) {
    const double noise_draw = random.normal();
    state = 0.999 * state + std::sqrt(1 - 0.999 * 0.999) * noise_draw;
    white_noise_j.push_back(10 + 0.1 * noise_draw);
    correlated_noise_j.push_back(10 + 0.1 * state);
  }
  const auto with_white_noise =
      find_steady_state(make_steps_with_energy(2000, [&](std::size_t i) { return white_noise_j[i]; }));
  const auto with_correlated_noise =
      find_steady_state(make_steps_with_energy(2000, [&](std::size_t i) { return correlated_noise_j[i]; }));
  EXPECT_LT(with_white_noise->standard_error_j, 2 * 0.1 / std::sqrt(2000.0));
  EXPECT_GT(with_correlated_noise->standard_error_j, 5 * with_white_noise->standard_error_j);
  EXPECT_GT(with_correlated_noise->autocorrelation, 0.2);
}

TEST(SteadyState, ARunThatKeepsChangingIsNotSteady) {
  const auto steady =
      find_steady_state(make_steps_with_energy(300, [](std::size_t i) { return 5 + 0.01 * static_cast<double>(i); }));
  ASSERT_TRUE(steady);
  EXPECT_FALSE(steady->is_settled);
}

TEST(SteadyState, FewStepsHaveNoSteadyState) {
  EXPECT_FALSE(find_steady_state({}));
  EXPECT_FALSE(find_steady_state(make_steps_with_energy(11, [](std::size_t) { return 5.0; })));
  EXPECT_TRUE(find_steady_state(make_steps_with_energy(12, [](std::size_t) { return 5.0; })));
}

TEST(SteadyState, StepsWithoutEnergyGiveZeroAndNoNan) {
  const auto steady = find_steady_state(make_steps_with_energy(200, [](std::size_t) { return 0.0; }));
  ASSERT_TRUE(steady);
  EXPECT_EQ(steady->energy_j, 0);
  EXPECT_FALSE(std::isnan(steady->standard_error_j));
}

TEST(SteadyState, ItsSumContainsAllStepsAlthoughTheMeanIsTrimmed) {
  // Every fifth of the run is a validation with a tenth of the energy.
  const auto steps = make_steps_with_energy(200, [](std::size_t i) { return i % 50 >= 40 ? 1.0 : 10.0; });
  const auto steady = find_steady_state(steps);
  ASSERT_TRUE(steady);
  double sum_j = 0;
  for (std::size_t i = steady->first_step; i + 1 < steps.size(); ++i) sum_j += steps[i].energy_j;
  EXPECT_DOUBLE_EQ(steady->energy_sum_j, sum_j);
}

TEST(SteadyState, EvaluationIsPartOfTheEnergyOfAStepAndItsStepsAreNotJudged) {
  std::vector<StepEnergy> steps;
  double time_s = 0;
  const auto add = [&](double energy_j, bool is_evaluation) {
    steps.push_back({time_s, time_s + 1, 1, energy_j, is_evaluation});
    time_s += 1;
  };
  for (int step = 0; step < 60; ++step) {
    add(10, false);
    for (int batch = 0; step % 6 == 5 && batch < 3; ++batch) add(2, true);
  }
  const auto steady = find_steady_state(steps);
  ASSERT_TRUE(steady);
  EXPECT_EQ(steady->steps, 59u) << "all but the last step";
  EXPECT_NEAR(steady->energy_j, 10 + 9 * 3 * 2 / 59.0, 1e-9) << "the last evaluation follows the last step";
  EXPECT_NEAR(steady->time_s, 1 + 9 * 3 / 59.0, 1e-9);
  EXPECT_EQ(steady->outlier_steps, 0u);
}

}  // namespace
}  // namespace joulemap::attribution
