// SPDX-License-Identifier: Apache-2.0
//
// SimulatedGpu: a GPU whose kinds of kernels draw known powers, and its energy counter as a recorder would have read it.
// What it does to the truth follows an H200: steps every 100 ms, a lag of 10 ms, reads of 4 ms, some of them late or left
// out, noise in what is counted, bursts that draw a little more or less than usual. Same seed, same run. For tests; pure.
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
  std::vector<Sample> history;  // what the driver kept of the power, in milliwatts
  std::vector<double> busy_s;   // by kind
  std::vector<double> joules;   // by kind: the truth
  double idle_j = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t probe_begin_ns = 0;  // of a loop that is probed: when
  std::vector<double> loop_joules;  // of that loop: by kind, before then
  std::vector<double> slowed_s;     // by kind: of what was held back
  std::vector<double> slowed_j;
};

// A second of a run after another, as a capture tells it: single kernels and their sums, on "GPU-1". `places` are told
// with the first; `place_of` says where a kernel was launched.
std::vector<Activity> activities_of(
    const SimulatedRun& run, const std::vector<Place>& places = {},
    const std::function<std::uint32_t(const SimulatedKernel&)>& place_of = [](const SimulatedKernel&) { return 0U; });

class SimulatedGpu {
 public:
  struct Traits {
    std::vector<double> watts = {720, 540, 380, 300, 610, 340, 310, 190, 250};
    double idle_w = 130;
    double period_s = 0.0999997;
    double lag_s = 0.010;
    double noise_j = 2.0;        // of what is counted in 100 ms
    double burst_spread = 0.02;  // of a burst's power
    double gain_spread = 0.005;  // of the whole counter
    double late = 0.1;           // share of reads that come up to 40 ms late
    double missing = 0.02;       // share of steps that are not read at all
    int steps_per_read = 1;      // a counter that is dear to read is read seldom
    double kept_every_s = 0.02;  // the driver keeps the power, with an exponential memory
    double memory_s = 0.012;     // of this time constant,
    double kept_late_s = 0.004;  // up to so late,
    double kept_noise_w = 4;     // and with this noise
    // At times its clocks are held back for 30 to 300 ms: the first `computing` kinds then take so many times longer, and
    // draw less of what they draw above idling, by the third power of it.
    double slowness = 1;
    std::size_t computing = 0;
    double slowed_share = 0.3;  // of the time
    std::int64_t kernel_ns = 200'000;
    std::int64_t gap_ns = 3'000;
  };

  SimulatedGpu(Traits traits, std::uint64_t seed) : traits_(std::move(traits)), random_(seed) {}

  // Kinds at random in bursts of 2 to 60 ms, now and then a pause.
  SimulatedRun mixture(double length_s);
  // The same step again and again: each kind once, `kernels_each` kernels long, then a short gap.
  SimulatedRun steady_loop(double length_s, std::size_t kernels_each);
  // The same with pauses before kinds at random moments (`record --dither`), so many of the time in all.
  struct Dither {
    double share = 0.01;
    double shortest_s = 0.02;
    double longest_s = 0.04;
  };
  SimulatedRun dithered_loop(double length_s, std::size_t kernels_each, const Dither& dither);
  // The same, and then modules replayed in bursts of 0.1 to 0.3 s, in random order, for `probe_s`: one for each kind, of
  // which most of its kernels are.
  SimulatedRun probed_loop(double length_s, std::size_t kernels_each, double probe_s);
  // The channel that the samples are of.
  static Channel channel();

 private:
  struct Stretch {
    std::int64_t start_ns;
    std::int64_t end_ns;
    double watts;
  };

  double uniform(double low, double high) { return low + (high - low) * std::uniform_real_distribution<>()(random_); }
  void burst(SimulatedRun& run, std::uint32_t kind, std::int64_t until_ns);
  void loop(SimulatedRun& run, double length_s, std::size_t kernels_each, const Dither& dither);
  void replay(SimulatedRun& run, std::uint32_t module, std::int64_t until_ns);
  void pause(SimulatedRun& run, std::int64_t length_ns);
  double slowness_of(std::uint32_t kind);
  void count(SimulatedRun& run);
  void keep_history(SimulatedRun& run);
  void read(SimulatedRun& run, double at_s, double first_step_s, const std::vector<double>& counter_j);

  Traits traits_;
  std::mt19937_64 random_;
  std::int64_t now_ns_ = 0;
  std::int64_t clocks_until_ns_ = 0;  // they stay as they are
  bool is_slowed_ = false;
  std::vector<Stretch> stretches_;  // without gaps
};

}  // namespace joulemap
