// SPDX-License-Identifier: Apache-2.0
//
// H200Phases: simulates an H200 that runs phases of known power, and the samples that `joulemap record` takes of it.
// The counter updates every 100 ms with a lag of 10 ms; it is read densely at both ends and twice every 2.5 s between.
// The power history has a value every 20 ms with a lag of 4 ms and a time constant of 13 ms, as joulemap calibrate finds
// them (docs/reference/evidence.md), delivered every 1.5 s. Deterministic for a seed. For tests; pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "model/channel.h"
#include "model/sample.h"

namespace joulemap {

struct H200Phases {
  struct PowerPhase {
    double length_s = 0;
    double watts = 0;
  };
  std::vector<PowerPhase> phases;
  std::uint64_t seed = 1;
  double read_interval_s = 2.5;
  double begin_s = 5;

  static constexpr double kPeriod_s = 0.0999997;
  static constexpr double kLag_s = 0.010;
  static constexpr double kTimeConstant_s = 0.0134;
  static constexpr double kHistoryLag_s = 0.004;
  static constexpr double kReadDuration_s = 0.004;
  static constexpr double kLatchDelay_s = 0.001;  // largest delay from the start of a read to the moment of its value

  double end_s() const {
    double end = begin_s;
    for (const PowerPhase& phase : phases) end += phase.length_s;
    return end;
  }
  std::int64_t begin_ns() const { return to_ns(begin_s); }
  std::int64_t end_ns() const { return to_ns(end_s()); }
  static std::int64_t to_ns(double time_s) { return static_cast<std::int64_t>(std::llround(time_s * 1e9)); }

  // Before the first phase: the power of the first; after the last phase: that of the last.
  double watts_at(double time_s) const {
    double until_s = begin_s;
    for (const PowerPhase& phase : phases) {
      until_s += phase.length_s;
      if (time_s < until_s) return phase.watts;
    }
    return phases.back().watts;
  }
  double compute_joules_until(double time_s) const {
    double joules = phases.front().watts * std::min(time_s, begin_s);
    double from_s = begin_s;
    for (const PowerPhase& phase : phases) {
      joules += phase.watts * std::clamp(time_s - from_s, 0.0, phase.length_s);
      from_s += phase.length_s;
    }
    return joules + phases.back().watts * std::max(time_s - from_s, 0.0);
  }
  // Value of the counter: the energy until kLag_s before its last update.
  double counter_value_j(double time_s) const { return compute_joules_until(update_before(time_s) - kLag_s); }
  double update_before(double time_s) const {
    const double phase_s = 0.013 + 0.001 * static_cast<double>(seed % 80);
    return phase_s + std::floor((time_s - phase_s) / kPeriod_s) * kPeriod_s;
  }

  static std::vector<Channel> channels() {
    Channel counter;
    counter.name = "gpu0-energy";
    counter.sensor = "nvml";
    counter.domain = "gpu0";
    counter.domain_class = DomainClass::gpu;
    counter.device = "GPU-1";
    counter.scale = 1e-3;
    counter.refresh_s = 0.1;
    Channel history = counter;
    history.name = "gpu0-power-history";
    history.kind = ChannelKind::gauge;
    history.quantity = Quantity::power_history;
    history.refresh_s = 0.02;
    return {counter, history};
  }

  // In the order in which a sampler delivers them: the history arrives late, in batches.
  std::vector<Sample> samples() const {
    std::mt19937_64 random(seed);
    const auto random_delay_s = [&](double max_delay_s) {
      return max_delay_s * std::uniform_real_distribution<>()(random);
    };
    std::vector<Sample> delivered_samples;
    const std::vector<Sample> history_samples = history(random_delay_s);
    std::size_t delivered_count = 0;
    double next_history_s = begin_s + 1.5;
    const auto deliver_history = [&](double until_s) {
      while (delivered_count < history_samples.size() &&
             history_samples[delivered_count].reading.time_ns() <= to_ns(until_s))
        delivered_samples.push_back(history_samples[delivered_count++]);
    };
    const auto read_counter = [&](double at_s) {
      for (; next_history_s < at_s; next_history_s += 1.5) deliver_history(next_history_s);
      const auto raw_value = static_cast<std::uint64_t>(counter_value_j(at_s + random_delay_s(kLatchDelay_s)) * 1e3);
      delivered_samples.push_back({0, {raw_value, to_ns(at_s), to_ns(at_s + kReadDuration_s), ReadCode::ok}});
    };
    const double last_s = end_s() + 0.25;
    double at_s = begin_s - 0.3;
    for (; at_s < begin_s + 0.4; at_s += kReadDuration_s + 0.002 + random_delay_s(0.003)) read_counter(at_s);
    // At an update, to locate it more exactly, and a third of a period later, where a read is cheapest.
    for (at_s += read_interval_s; at_s < end_s() - 0.15; at_s += read_interval_s) {
      read_counter(update_before(at_s) - 0.001 + random_delay_s(0.002));
      read_counter(update_before(at_s) + 0.035 + random_delay_s(0.01));
    }
    for (at_s = end_s() - 0.1; at_s < last_s; at_s += kReadDuration_s + 0.002 + random_delay_s(0.003))
      read_counter(at_s);
    deliver_history(end_s());
    return delivered_samples;
  }

 private:
  template <class DelayFunction>
  std::vector<Sample> history(const DelayFunction& random_delay_s) const {
    std::vector<Sample> history_samples;
    double shown_w = phases.front().watts;
    constexpr double kTick_s = 0.001;
    double next_s = begin_s + random_delay_s(0.02);
    double read_s = next_s + random_delay_s(0.004);
    for (double now_s = begin_s; now_s < end_s() + 0.3; now_s += kTick_s) {
      shown_w += (watts_at(now_s - kHistoryLag_s) - shown_w) * (1 - std::exp(-kTick_s / kTimeConstant_s));
      if (now_s < read_s) continue;
      const auto raw_value = static_cast<std::uint64_t>(shown_w * 1e3);
      history_samples.push_back({1, {raw_value, to_ns(now_s), to_ns(now_s), ReadCode::ok}});
      next_s += 0.02;
      read_s = next_s + random_delay_s(0.004);
    }
    return history_samples;
  }
};

}  // namespace joulemap
