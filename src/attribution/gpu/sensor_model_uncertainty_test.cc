// SPDX-License-Identifier: Apache-2.0
//
// Identical repeating steps alias with the power that a driver stores every 20 ms: observations differ a little, and
// the apparent powers depend on the sensor's lag and time constant.
#include "attribution/gpu/sensor_model_uncertainty.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <optional>
#include <random>

#include "attribution/gpu/power_regression.h"
#include "support/simulated_gpu.h"

namespace joulemap::attribution {
namespace {

struct ClassCounts {
  int regressed_classes = 0;
  int covered_classes = 0;
  int kinds = 0;
};

// Simulates a GPU that runs nine kinds of kernels in identical steps of `step_ms`. The powers of its kernels and the time
// constant of its power sensor vary with the seed.
ClassCounts simulate_class_counts(double step_ms, std::uint64_t seed) {
  SimulatedGpu::GpuParameters traits{.updates_per_read = 25, .time_constant_s = seed % 2 == 0 ? 0.0145 : 0.0105};
  const std::vector<double> usual_w = traits.watts;
  std::mt19937_64 random(seed);
  for (double& watts : traits.watts) watts *= 1 + 0.025 * std::normal_distribution<>()(random);
  const double class_duration_ms = (step_ms - 0.3) / static_cast<double>(usual_w.size());
  const auto kernels_per_class = static_cast<std::size_t>(std::max(std::lround(class_duration_ms / 0.2), 1L));
  traits.kernel_ns =
      static_cast<std::int64_t>(class_duration_ms * 1e6 / static_cast<double>(kernels_per_class)) - traits.gap_ns;
  const SimulatedRun run = SimulatedGpu(traits, seed).steady_loop(20, kernels_per_class);
  KernelTimeline timeline(usual_w.size());
  for (const SimulatedKernel& kernel : run.kernels) {
    timeline.add_kernel(kernel.start_ns, kernel.end_ns, static_cast<std::uint16_t>(kernel.kind));
  }
  timeline.finish();
  std::vector<PowerPoint> history;
  for (const Sample& sample : run.history) {
    history.push_back({sample.reading.time_ns(), static_cast<double>(sample.reading.raw) * 1e-3});
  }
  const std::optional<PowerFit> fit = fit_powers(timeline, {{}, history});
  ClassCounts counts;
  for (std::size_t kind = 0; fit && kind < usual_w.size(); ++kind) {
    const KernelClassPower& power = fit->classes[kind];
    ++counts.kinds;
    if (!power.is_regressed) continue;
    ++counts.regressed_classes;
    if (power.low_w <= usual_w[kind] && usual_w[kind] <= power.high_w) ++counts.covered_classes;
  }
  return counts;
}

TEST(SensorModelUncertainty, IntervalsOfEqualStepsCover) {
  ClassCounts total_counts;
  for (const double step_ms : {5.0, 9.0, 13.0, 19.0, 20.0, 37.0}) {
    ClassCounts totals;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const ClassCounts counts = simulate_class_counts(step_ms, seed);
      if (counts.covered_classes + 3 < counts.regressed_classes)
        std::printf("steps of %.0f ms, seed %lu: ", step_ms, seed);
      if (counts.covered_classes + 3 < counts.regressed_classes)
        std::printf("%d of %d hold\n", counts.covered_classes, counts.regressed_classes);
      totals.regressed_classes += counts.regressed_classes;
      totals.covered_classes += counts.covered_classes;
      totals.kinds += counts.kinds;
    }
    std::printf("steps of %.0f ms, seeds 1 to 4: %d of %d kinds are told apart, %d intervals hold\n", step_ms,
                totals.regressed_classes, totals.kinds, totals.covered_classes);
    total_counts.regressed_classes += totals.regressed_classes;
    total_counts.covered_classes += totals.covered_classes;
    EXPECT_GE(totals.covered_classes, totals.regressed_classes * 8 / 10) << "steps of " << step_ms << " ms";
  }
  EXPECT_GE(total_counts.covered_classes, total_counts.regressed_classes * 85 / 100);
  EXPECT_LE(total_counts.covered_classes, total_counts.regressed_classes * 97 / 100);
  EXPECT_GE(total_counts.regressed_classes, 100) << "else the test says little";
}

TEST(SensorModelUncertainty, IsTheSpreadAcrossPlausibleSensorModels) {
  const std::vector<AlternativeSensorModel> alternatives = {{{0, 12}, 1, statistics::NormalEquations(), {100, 50}},
                                                            {{0, 15}, 1, statistics::NormalEquations(), {120, 50}}};
  const std::vector<double> uncertainty = sensor_model_uncertainty(alternatives, 50);
  ASSERT_EQ(uncertainty.size(), 2U);
  EXPECT_NEAR(uncertainty[0], 20.0 * 20 / 2 / 2500, 1e-12);
  EXPECT_EQ(uncertainty[1], 0);
  EXPECT_TRUE(sensor_model_uncertainty({}, 50).empty());
}

}  // namespace
}  // namespace joulemap::attribution
