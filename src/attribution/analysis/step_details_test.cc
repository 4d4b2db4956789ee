// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/step_details.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "model/run_view.h"

namespace joulemap::attribution {
namespace {

constexpr std::int64_t kStep_ns = 10 * kNanosecondsPerMillisecond;
const std::string kDevice = "GPU-1";
const LayerKey kConvLayer{{"train", "forward", "conv"}, "gpu0"};
const LayerKey kFullyConnectedLayer{{"train", "forward", "fc"}, "gpu0"};

StepRecord make_step(std::int64_t number, std::int64_t length_ns = kStep_ns) {
  return {.number = number, .begin_ns = number * kStep_ns, .end_ns = number * kStep_ns + length_ns};
}

// A kernel of one millisecond.
StepKernel make_step_kernel(std::int64_t start_ns, const LayerKey* layer, double energy_j) {
  return {{start_ns, start_ns + kNanosecondsPerMillisecond}, &kDevice, layer, energy_j};
}

TEST(StepDetails, SumsTheKernelsOfEachLayer) {
  StepDetails details;
  ASSERT_TRUE(details.add_step(make_step(0), 0));
  details.add_kernels(
      std::vector{make_step_kernel(0, &kConvLayer, 1), make_step_kernel(kStep_ns / 2, &kFullyConnectedLayer, 5),
                  make_step_kernel(kStep_ns / 4, &kConvLayer, 2), make_step_kernel(kStep_ns / 4, nullptr, 0.5)});
  const CollectedStep& step = *details.steps().at(0);
  ASSERT_EQ(step.layers.size(), 3u);
  EXPECT_EQ(step.layers[0].layer, &kFullyConnectedLayer);
  EXPECT_DOUBLE_EQ(step.layers[1].energy_j, 3);
  EXPECT_DOUBLE_EQ(step.layers[1].time_s, 2e-3);
  EXPECT_EQ(step.layers[2].layer, nullptr);
  EXPECT_EQ(step.kernels, 4u);
}

TEST(StepDetails, CountsTheTimeOfConcurrentKernelsOnce) {
  StepDetails details;
  details.add_step(make_step(0), 0);
  details.add_kernels(std::vector{make_step_kernel(0, &kConvLayer, 1),
                                  make_step_kernel(kNanosecondsPerMillisecond / 2, &kFullyConnectedLayer, 1)});
  EXPECT_DOUBLE_EQ(details.steps().at(0)->busy_s.at(kDevice), 1.5e-3);
}

TEST(StepDetails, AStepLastsUntilTheFirstKernelOfTheNextStep) {
  StepDetails details;
  details.add_step(make_step(0), 0);
  details.add_kernels(std::vector{make_step_kernel(0, &kConvLayer, 1)});
  details.add_step(make_step(1), kStep_ns);
  details.add_kernels(std::vector{make_step_kernel(kStep_ns, &kConvLayer, 1)});
  details.add_step(make_step(9), 9 * kStep_ns);  // the steps between were not traced
  EXPECT_EQ(details.steps().at(0)->gpu_span.end_ns, kStep_ns);
  EXPECT_EQ(details.steps().at(1)->gpu_span.end_ns, kStep_ns + kNanosecondsPerMillisecond);
}

TEST(StepDetails, OfManyStepsItKeepsEvenlyChosenOnesAndTheLongest) {
  StepDetails details;
  std::uint64_t detailed_step_count = 0;
  const std::set<std::int64_t> long_steps = {777, 4321, 9998};
  for (std::int64_t number = 0; number < 10'000; ++number) {
    const std::int64_t length_ns = long_steps.contains(number) ? 5 * kStep_ns : kStep_ns;
    if (!details.add_step(make_step(number, length_ns), number * kStep_ns)) continue;
    details.add_kernels(std::vector{make_step_kernel(number * kStep_ns, &kConvLayer, 1)});
    ++detailed_step_count;
  }
  EXPECT_EQ(details.step_count(), 10'000u);
  const std::vector<const CollectedStep*> steps = details.steps();
  EXPECT_LE(steps.size(), kMaxEvenlySpacedStepDetails + kMaxLongStepDetails);
  EXPECT_GE(steps.size(), kMaxEvenlySpacedStepDetails / 2);
  std::set<std::int64_t> numbers;
  for (const CollectedStep* step : steps) {
    numbers.insert(step->number);
    EXPECT_EQ(step->kernels, 1u) << step->number;
  }
  EXPECT_LE(detailed_step_count, 1000u);  // most steps need no kernels
  for (const std::int64_t number : long_steps) EXPECT_TRUE(numbers.contains(number)) << number;
  EXPECT_TRUE(numbers.contains(0) && numbers.contains(5120));
}

}  // namespace
}  // namespace joulemap::attribution
