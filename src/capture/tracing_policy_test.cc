// SPDX-License-Identifier: Apache-2.0
#include "capture/tracing_policy.h"

#include <gtest/gtest.h>

namespace joulemap::capture {
namespace {

constexpr KernelLog::StepLoadSummary kResNet50Load{
    .traced_steps = 100, .kernels_per_step = 737, .step_s = 0.032, .gpu_s = 0.031};
constexpr KernelLog::StepLoadSummary kLaunchBoundLoad{
    .traced_steps = 100, .kernels_per_step = 537, .step_s = 0.016, .gpu_s = 0.003};

double simulate_traced_fraction(TracingMode tracing_mode, const KernelLog::StepLoadSummary& load, int steps) {
  TracingPolicy plan(tracing_mode);
  int traced_step_count = 0;
  for (int i = 0; i < steps; ++i)
    traced_step_count += plan.decide_step_tracing(i * std::int64_t{16'000'000}, load).is_traced ? 1 : 0;
  return traced_step_count / static_cast<double>(steps);
}

TEST(TracingPolicy, TracesEveryStepOfAGpuBoundProgram) {
  EXPECT_EQ(simulate_traced_fraction(TracingMode::automatic, kResNet50Load, 1000), 1);
}

TEST(TracingPolicy, TracesFewStepsOfALaunchBoundProgram) {
  const double share = simulate_traced_fraction(TracingMode::automatic, kLaunchBoundLoad, 10'000);
  EXPECT_LT(share, 0.025);
  EXPECT_GT(share, 0.005);
}

TEST(TracingPolicy, TracesEveryStepAgainWhenTheGpuBecomesBusy) {
  TracingPolicy plan(TracingMode::automatic);
  for (int i = 0; i < 1000; ++i) plan.decide_step_tracing(i * std::int64_t{16'000'000}, kLaunchBoundLoad);
  EXPECT_TRUE(plan.is_light_mode());
  plan.decide_step_tracing(17'000'000'000, kResNet50Load);
  EXPECT_FALSE(plan.is_light_mode());
}

TEST(TracingPolicy, ObeysAnExplicitModeAtAnyLoad) {
  EXPECT_EQ(simulate_traced_fraction(TracingMode::full, kLaunchBoundLoad, 1000), 1);
  EXPECT_LT(simulate_traced_fraction(TracingMode::light, kResNet50Load, 10'000), 0.02);
}

TEST(TracingPolicy, TracesAtLeastTwoStepsInARowBecauseTheFirstHasEnableCost) {
  TracingPolicy plan(TracingMode::light);
  bool is_previous_traced = true;
  int runs_of_two = 0;
  int run = 0;
  for (int i = 0; i < 4000; ++i) {
    const bool is_traced = plan.decide_step_tracing(i * std::int64_t{200'000'000}, kResNet50Load).is_traced;
    run = is_traced ? run + 1 : 0;
    if (i > 20 && is_previous_traced && !is_traced) ++runs_of_two;
    if (i > 20) {
      EXPECT_LE(run, 2);
    }
    is_previous_traced = is_traced;
  }
  EXPECT_GE(runs_of_two, 9) << "800 s: ever more seldom, up to once a minute";
}

TEST(TracingPolicy, PausesTracingForSecondsHoweverShortStepsAre) {
  TracingPolicy plan(TracingMode::light);
  int traced_step_count = 0;
  for (int i = 0; i < 30'000; ++i)
    traced_step_count += plan.decide_step_tracing(i * std::int64_t{1'000'000}, kLaunchBoundLoad).is_traced ? 1 : 0;
  EXPECT_NEAR(traced_step_count, 12 + 3 * 300, 10) << "30 s: the first steps, then 0.3 s after 8, 17 and 26 seconds";
}

TEST(TracingPolicy, TracesFewReplaysOfAGraphOfShortKernels) {
  // Replays are launched ahead of the GPU, which is always busy: 459 kernels of 2 us.
  const KernelLog::StepLoadSummary load{
      .traced_steps = 100, .kernels_per_step = 459, .step_s = 0.00005, .gpu_s = 0.0009};
  EXPECT_TRUE(is_full_tracing_costly(load));
  EXPECT_FALSE(is_full_tracing_costly(kResNet50Load));
}

TEST(TracingPolicy, ACpuProgramIsNotLaunchBound) { EXPECT_FALSE(is_full_tracing_costly({})); }

TEST(TracingPolicy, SamplesTheThirdStepAndThenOneEveryTenSeconds) {
  TracingPolicy plan(TracingMode::automatic);
  int sampled_step_count = 0;
  for (int i = 0; i < 3001; ++i) {
    const bool is_sampled = plan.decide_step_tracing(i * std::int64_t{10'000'000}, kResNet50Load).is_sampled;
    EXPECT_TRUE(is_sampled || i != 2);
    sampled_step_count += is_sampled ? 1 : 0;
  }
  EXPECT_EQ(sampled_step_count, 3);
}

}  // namespace
}  // namespace joulemap::capture
