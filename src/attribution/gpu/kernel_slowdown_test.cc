// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/kernel_slowdown.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <optional>

#include "attribution/gpu/power_regression.h"
#include "support/simulated_gpu.h"

namespace joulemap::attribution {
namespace {

TEST(KernelSlowdown, TheUsualLengthIsThatOfAFastKernelOfItsClass) {
  std::vector<std::uint32_t> lengths_ns(100, 10'000);
  for (std::size_t i = 0; i < 40; ++i) lengths_ns[i] = 12'000;
  lengths_ns[50] = 2'000;
  EXPECT_EQ(full_speed_duration_ns(lengths_ns), 10'000);
}

TEST(KernelSlowdown, KernelsWithDifferentWorkHaveNoUsualLength) {
  std::vector<std::uint32_t> lengths_ns;
  for (std::uint32_t i = 0; i < 100; ++i) lengths_ns.push_back(10'000 + 300 * i);
  EXPECT_EQ(full_speed_duration_ns(lengths_ns), 0);
  EXPECT_EQ(full_speed_duration_ns(std::vector<std::uint32_t>(3, 10'000)), 0) << "too few";
  EXPECT_EQ(full_speed_duration_ns(std::vector<std::uint32_t>(100, 1'000)), 0) << "as long as the clock's steps";
}

TEST(KernelSlowdown, AFarLongerKernelDoesDifferentWork) {
  EXPECT_EQ(slowdown_factor(9'000, 10'000), 1);
  EXPECT_EQ(slowdown_factor(12'000, 10'000), 1.2);
  EXPECT_EQ(slowdown_factor(30'000, 10'000), 1);
  EXPECT_EQ(slowdown_factor(12'000, 0), 1) << "nobody knows";
}

TEST(KernelSlowdown, IsPackedIntoAByteWithinHalfAPercent) {
  for (double slowdown = 1; slowdown < 1.6; slowdown += 0.013) {
    EXPECT_NEAR(unpack_slowdown(pack_slowdown(slowdown)), slowdown, 0.003);
  }
}

// A simulated run, with the slowdown of each kernel computed from its duration, as in `report`.
struct SlowedRun {
  SimulatedRun run;
  KernelTimeline timeline;
  std::vector<PowerPoint> history;
};

SlowedRun simulate_slowed_run(const SimulatedGpu::GpuParameters& traits, std::uint64_t seed, double length_s) {
  SlowedRun slowed{SimulatedGpu(traits, seed).simulate_mixture(length_s), KernelTimeline(traits.watts.size()), {}};
  std::vector<std::vector<std::uint32_t>> lengths_ns(traits.watts.size());
  for (const SimulatedKernel& kernel : slowed.run.kernels) {
    lengths_ns[kernel.kind].push_back(static_cast<std::uint32_t>(kernel.end_ns - kernel.start_ns));
  }
  std::vector<double> full_speed_ns;
  for (const std::vector<std::uint32_t>& kind_lengths_ns : lengths_ns)
    full_speed_ns.push_back(full_speed_duration_ns(kind_lengths_ns));
  for (const SimulatedKernel& kernel : slowed.run.kernels) {
    const auto length_ns = static_cast<double>(kernel.end_ns - kernel.start_ns);
    slowed.timeline.add_kernel(kernel.start_ns, kernel.end_ns, static_cast<std::uint16_t>(kernel.kind),
                               slowdown_factor(length_ns, full_speed_ns[kernel.kind]));
  }
  slowed.timeline.finish();
  for (const Sample& sample : slowed.run.history) {
    slowed.history.push_back({sample.reading.time_ns(), static_cast<double>(sample.reading.raw) * 1e-3});
  }
  return slowed;
}

struct RelativeErrors {
  double sum_of_squares = 0;
  int count = 0;
  void add(double estimate, double truth) {
    sum_of_squares += (estimate / truth - 1) * (estimate / truth - 1);
    ++count;
  }
  double rms() const { return std::sqrt(sum_of_squares / count); }
};

// Five of nine kernel kinds are compute-bound, and clocks fall to 80 % for a third of the time, as at a power limit.
TEST(KernelSlowdown, SeparatesPowersUnderAnIntermittentPowerLimit) {
  RelativeErrors errors_without_slowdown;
  RelativeErrors errors_by_slowdown;
  int covered_count = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const SimulatedGpu::GpuParameters traits{.updates_per_read = 25, .slowdown = 1.25, .compute_bound_classes = 5};
    const SlowedRun slowed = simulate_slowed_run(traits, seed, 20);
    const std::optional<PowerFit> fit_without_slowdown = fit_powers(slowed.timeline, {{}, slowed.history});
    const std::optional<PowerFit> fit = fit_powers(slowed.timeline, {{}, slowed.history, {}, {}, true});
    ASSERT_TRUE(fit_without_slowdown && fit);
    EXPECT_EQ(fit_without_slowdown->slowdown_exponent, 0) << "nothing says that clocks were held back";
    EXPECT_NEAR(fit->slowdown_exponent, 3, 0.5);
    EXPECT_LT(fit->residual_sd_j, fit_without_slowdown->residual_sd_j);
    for (std::size_t kind = 0; kind < traits.compute_bound_classes; ++kind) {
      const double slowed_power_w = slowed.run.slowed_j[kind] / slowed.run.slowed_s[kind];
      const double full_speed_w =
          (slowed.run.joules[kind] - slowed.run.slowed_j[kind]) / (slowed.run.busy_s[kind] - slowed.run.slowed_s[kind]);
      for (const auto& [slowdown, truth_w] :
           {std::pair(1.0, full_speed_w), std::pair(traits.slowdown, slowed_power_w)}) {
        errors_without_slowdown.add(fit_without_slowdown->class_power_w(kind, slowdown), truth_w);
        errors_by_slowdown.add(fit->class_power_w(kind, slowdown), truth_w);
      }
      if (fit->classes[kind].low_w <= full_speed_w && full_speed_w <= fit->classes[kind].high_w) ++covered_count;
    }
  }
  std::printf("at a limit that comes and goes: %.1f %% with one power, %.1f %% by pace; %d of %d intervals hold\n",
              100 * errors_without_slowdown.rms(), 100 * errors_by_slowdown.rms(), covered_count,
              errors_by_slowdown.count / 2);
  EXPECT_LT(errors_by_slowdown.rms(), 0.02);
  EXPECT_LT(5 * errors_by_slowdown.rms(), errors_without_slowdown.rms());
  EXPECT_GE(covered_count, errors_by_slowdown.count / 2 * 85 / 100);
}

// Kernels that take longer for other reasons, at unchanged power, are not mistaken for lowered clocks.
TEST(KernelSlowdown, IgnoresLengthsUnrelatedToPower) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const SimulatedGpu::GpuParameters traits{.updates_per_read = 25};
    SlowedRun slowed = simulate_slowed_run(traits, seed, 10);
    std::mt19937_64 random(seed);
    KernelTimeline timeline(traits.watts.size());
    for (const SimulatedKernel& kernel : slowed.run.kernels) {
      timeline.add_kernel(kernel.start_ns, kernel.end_ns, static_cast<std::uint16_t>(kernel.kind),
                          random() % 3 == 0 ? 1.2 : 1.0);
    }
    timeline.finish();
    const std::optional<PowerFit> fit = fit_powers(timeline, {{}, slowed.history, {}, {}, true});
    ASSERT_TRUE(fit);
    EXPECT_EQ(fit->slowdown_exponent, 0);
  }
}

}  // namespace
}  // namespace joulemap::attribution
