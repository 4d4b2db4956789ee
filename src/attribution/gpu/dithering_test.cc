// SPDX-License-Identifier: Apache-2.0
//
// Benefit of `record --dither`: pauses at random positions in a loop of identical steps, on a simulated GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "attribution/gpu/power_regression.h"
#include "attribution/ledger/recorded_energy.h"
#include "support/simulated_gpu.h"

namespace joulemap::attribution {
namespace {

KernelTimeline make_timeline(const SimulatedRun& run) {
  KernelTimeline timeline(run.busy_s.size());
  for (const SimulatedKernel& kernel : run.kernels) {
    timeline.add_kernel(kernel.start_ns, kernel.end_ns, static_cast<std::uint16_t>(kernel.kind));
  }
  timeline.finish();
  return timeline;
}

struct PowerFitAccuracy {
  double error = 0;              // root mean square relative error of the power of a kernel kind
  double interval_coverage = 0;  // coverage of the 90 % intervals
};

PowerFitAccuracy simulate_accuracy(const SimulatedGpu::DitherSettings& dither, double length_s,
                                   std::size_t kernels_per_class, std::uint64_t seeds) {
  PowerFitAccuracy accuracy;
  double count = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SimulatedGpu gpu({.updates_per_read = 10}, seed);
    const SimulatedRun run = gpu.dithered_loop(length_s, kernels_per_class, dither);
    const std::vector<Channel> channels = {SimulatedGpu::channel()};
    RecordedEnergy energy(channels, {run.begin_ns, run.end_ns}, 10);
    for (const Sample& sample : run.samples) energy.add(sample);
    const RecordedEnergy::Result recorded = energy.finish();
    std::vector<PowerPoint> history;
    for (const Sample& sample : run.history) {
      history.push_back({sample.reading.time_ns(), static_cast<double>(sample.reading.raw) * 1e-3});
    }
    const std::optional<PowerFit> fit =
        fit_powers(make_timeline(run), {recorded.domain_curves.at(0).counter_updates, history});
    double busy_j = 0;
    double busy_s = 0;
    for (std::size_t kind = 0; kind < run.busy_s.size(); ++kind) {
      busy_j += run.joules[kind];
      busy_s += run.busy_s[kind];
    }
    for (std::size_t kind = 0; kind < run.busy_s.size(); ++kind) {
      const double truth = run.joules[kind] / run.busy_s[kind];
      // Without a fit all kinds get the mean power.
      const double watts = fit ? fit->classes[kind].watts : busy_j / busy_s;
      accuracy.error += (watts / truth - 1) * (watts / truth - 1);
      if (fit && fit->classes[kind].low_w <= truth && truth <= fit->classes[kind].high_w) ++accuracy.interval_coverage;
      ++count;
    }
  }
  accuracy.error = std::sqrt(accuracy.error / count);
  accuracy.interval_coverage /= count;
  return accuracy;
}

// 60 s of identical steps with nine kernel kinds each: without pauses the observations hardly differ.
TEST(Dithering, SeparatesKernelClassesOfEqualSteps) {
  for (const std::size_t kernels_per_class : {1U, 5U, 20U}) {
    const PowerFitAccuracy undithered_accuracy = simulate_accuracy({.share = 0}, 60, kernels_per_class, 3);
    const PowerFitAccuracy dithered_accuracy = simulate_accuracy({}, 60, kernels_per_class, 3);
    std::printf("60 s, steps of %4.1f ms: %.1f %% without pauses (%.0f %% of intervals hold), %.1f %% with (%.0f %%)\n",
                static_cast<double>(kernels_per_class) * 9 * 0.203, 100 * undithered_accuracy.error,
                100 * undithered_accuracy.interval_coverage, 100 * dithered_accuracy.error,
                100 * dithered_accuracy.interval_coverage);
    if (kernels_per_class == 1) continue;  // shorter than the sensor's time constant: little is gained
    EXPECT_LT(dithered_accuracy.error, 0.03);
    EXPECT_LT(3 * dithered_accuracy.error, undithered_accuracy.error);
    EXPECT_GE(dithered_accuracy.interval_coverage, 0.85);
  }
}

}  // namespace
}  // namespace joulemap::attribution
