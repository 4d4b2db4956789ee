// SPDX-License-Identifier: Apache-2.0
//
// SimulatedGpu: a GPU whose kernel classes have known powers, and its energy counter as a recorder would read it. The
// errors are those of an H200: counter updates every 100 ms, a lag of 10 ms, reads of 4 ms, late and missing reads,
// counter noise, and bursts whose power varies. Deterministic for a seed. For tests; pure.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "model/activity.h"
#include "model/channel.h"
#include "model/sample.h"

namespace joulemap {

struct SimulatedKernel {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t kind = 0;
};

struct SimulatedRun {
  std::vector<SimulatedKernel> kernels;
  std::vector<Sample> samples;  // of channel 0
  std::vector<Sample> history;  // power history of the driver, mW
  std::vector<double> busy_s;   // by class
  std::vector<double> joules;   // by class: true energy, J
  double idle_j = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t probe_begin_ns = 0;  // start of the probing, where there is one
  std::vector<double> loop_joules;  // by class: energy of the loop before the probing, J
  std::vector<double> slowed_s;     // by class: time at reduced clocks, s
  std::vector<double> slowed_j;
};

// The activity of a run, one second after another, as a capture writes it: individual kernels and their tallies, on
// "GPU-1". The first one contains `places`; `scope_of_kernel` returns the scope of a kernel's launch.
std::vector<Activity> activities_of(
    const SimulatedRun& run, const std::vector<Scope>& scopes = {},
    const std::function<std::uint32_t(const SimulatedKernel&)>& scope_of_kernel = [](const SimulatedKernel&) {
      return 0U;
    });

class SimulatedGpu {
 public:
  struct GpuParameters {
    std::vector<double> watts = {720, 540, 380, 300, 610, 340, 310, 190, 250};
    double idle_w = 130;
    double period_s = 0.0999997;
    double lag_s = 0.010;
    double noise_j = 2.0;                  // standard deviation over 100 ms
    double burst_spread = 0.02;            // relative standard deviation of a burst's power
    double gain_spread = 0.005;            // relative standard deviation of the counter's gain
    double late_read_fraction = 0.1;       // fraction of reads that are up to 40 ms late
    double missed_update_fraction = 0.02;  // fraction of counter updates without a read
    int updates_per_read = 1;              // counter updates per read; more for counters that are costly to read
    double history_period_s = 0.02;        // period of the driver's power history
    double time_constant_s = 0.012;        // its time constant
    double history_max_delay_s = 0.004;    // its largest delay
    double history_noise_w = 4;            // its noise, standard deviation
    // Clocks drop for 30 to 300 ms at a time. The first `compute_bound_classes` classes then take `slowdown` times as
    // long, and their power above idle is divided by the cube of `slowdown`.
    double slowdown = 1;
    std::size_t compute_bound_classes = 0;
    double slowed_share = 0.3;  // fraction of the time
    std::int64_t kernel_ns = 200'000;
    std::int64_t gap_ns = 3'000;
  };

  SimulatedGpu(GpuParameters traits, std::uint64_t seed) : parameters_(std::move(traits)), random_(seed) {}

  // Random classes in bursts of 2 to 60 ms, with occasional pauses.
  SimulatedRun simulate_mixture(double length_s);
  // One step repeated: `kernels_per_class` kernels of each class, then a short gap.
  SimulatedRun steady_loop(double length_s, std::size_t kernels_per_class);
  // The same with pauses at random positions between classes (`record --dither`), `share` of the time in total.
  struct DitherSettings {
    double share = 0.01;
    double shortest_s = 0.02;
    double longest_s = 0.04;
  };
  SimulatedRun dithered_loop(double length_s, std::size_t kernels_per_class, const DitherSettings& dither);
  // The same, followed by `probe_s` of probing: modules replayed in bursts of 0.1 to 0.3 s, in random order. There is
  // one module per class, and most of its kernels are of that class.
  SimulatedRun probed_loop(double length_s, std::size_t kernels_per_class, double probe_s);
  // The channel of the samples.
  static Channel channel();

 private:
  struct PowerSegment {
    std::int64_t start_ns;
    std::int64_t end_ns;
    double watts;
  };

  double uniform(double low, double high) { return low + (high - low) * std::uniform_real_distribution<>()(random_); }
  void add_burst(SimulatedRun& run, std::uint32_t kind, std::int64_t until_ns);
  void simulate_loop(SimulatedRun& run, double length_s, std::size_t kernels_per_class, const DitherSettings& dither);
  void replay(SimulatedRun& run, std::uint32_t module, std::int64_t until_ns);
  void simulate_pause(SimulatedRun& run, std::int64_t length_ns);
  double update_slowdown(std::uint32_t kind);
  void simulate_counter(SimulatedRun& run);
  void record_history(SimulatedRun& run);
  void read(SimulatedRun& run, double at_s, double first_update_s, const std::vector<double>& counter_j);

  GpuParameters parameters_;
  std::mt19937_64 random_;
  std::int64_t now_ns_ = 0;
  std::int64_t clocks_until_ns_ = 0;  // end of the current clock state
  bool are_clocks_reduced_ = false;
  std::vector<PowerSegment> segments_;  // contiguous
};

}  // namespace joulemap
