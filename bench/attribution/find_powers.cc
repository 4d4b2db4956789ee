// SPDX-License-Identifier: Apache-2.0
//
// Measures time and memory to estimate the kernel powers of a simulated run. Prints the time relative to sorting the
// same kernels (a ratio that is comparable across machines), and the errors of the powers. build/bin/bench_attribution
// [SECONDS [KERNEL_US]]. Default: 2.7 million kernels and 17 thousand counter updates.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "attribution/gpu/gpu_work.h"
#include "attribution/ledger/machine_energy.h"
#include "attribution/ledger/recorded_energy.h"
#include "base/clock.h"
#include "support/simulated_gpu.h"

namespace {

using namespace joulemap;
using namespace joulemap::attribution;

double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

double measure_sorting_s(std::vector<SimulatedKernel> kernels) {
  std::reverse(kernels.begin(), kernels.end());
  const std::int64_t begin_ns = monotonic_ns();
  std::sort(kernels.begin(), kernels.end(),
            [](const auto& a, const auto& b) { return a.kind != b.kind ? a.kind < b.kind : a.end_ns < b.end_ns; });
  return seconds(monotonic_ns() - begin_ns);
}

int measure_run(double length_s, std::int64_t kernel_ns) {
  SimulatedGpu gpu({.kernel_ns = kernel_ns}, 1);
  const SimulatedRun run = gpu.simulate_mixture(length_s);
  const std::vector<Activity> activities = activities_of(run);
  const double sorting_time_s = measure_sorting_s(run.kernels);
  const double initial_peak_bytes = peak_bytes();
  const std::int64_t begin_ns = monotonic_ns();
  const TimeSpan span{run.begin_ns, run.end_ns};
  const std::vector<Channel> channels = {SimulatedGpu::channel()};
  RecordedEnergy recorded(channels, span, 240);
  for (const Sample& sample : run.samples) recorded.add(sample);
  const RecordedEnergy::Result energy = recorded.finish();
  ActivitySums sums(span);
  GpuWorkCollector work(span);
  for (const Activity& activity : activities) sums.add(0, activity);
  for (const Activity& activity : activities) work.add(0, activity);
  sums.finish();
  DeviceWork device = std::move(work.finish(sums.processes()).at("GPU-1"));
  const GpuPowers powers = find_kernel_powers(std::move(device), {energy.domain_curves.at(0).counter_updates}, span);
  const double took_s = seconds(monotonic_ns() - begin_ns);
  const double kernels = static_cast<double>(run.kernels.size());
  double squares = 0;
  for (std::size_t kind = 0; kind < run.busy_s.size(); ++kind) {
    const double estimated_w =
        powers.power_fit.classes[powers.class_columns.at({0, static_cast<std::uint32_t>(kind)})].watts;
    const double error = estimated_w * run.busy_s[kind] / run.joules[kind] - 1;
    squares += error * error;
  }
  fmt::print("kernels             {:.0f}\nintervals           {}\n", kernels, powers.power_fit.observation_count);
  fmt::print("seconds             {:.2f} ({:.1f} times sorting the kernels)\n", took_s, took_s / sorting_time_s);
  fmt::print("bytes a kernel      {:.0f} at most\n", (peak_bytes() - initial_peak_bytes) / kernels);
  fmt::print("error of a kind     {:.2f} % root mean square\n",
             100 * std::sqrt(squares / static_cast<double>(run.busy_s.size())));
  fmt::print("lag                 {:.2f} ms ({:.2f} to {:.2f})\n", 1e3 * seconds(powers.power_fit.lag_ns),
             1e3 * seconds(powers.power_fit.lag_low_ns), 1e3 * seconds(powers.power_fit.lag_high_ns));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const double length_s = argc > 1 ? std::atof(argv[1]) : 1700;
  const auto kernel_ns = static_cast<std::int64_t>((argc > 2 ? std::atof(argv[2]) : 580) * 1000);
  return measure_run(length_s, kernel_ns);
}
