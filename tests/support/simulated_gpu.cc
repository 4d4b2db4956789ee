// SPDX-License-Identifier: Apache-2.0
#include "support/simulated_gpu.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace joulemap {
namespace {

constexpr std::int64_t kStart_ns = 5'000'000'000;
constexpr double kSecond_ns = 1e9;
constexpr double kReadDuration_s = 0.004;
constexpr double kDenseReadsEnd_s = 0.5;  // reads are dense until then

std::int64_t to_ns(double time_s) { return static_cast<std::int64_t>(std::llround(time_s * kSecond_ns)); }
double to_s(std::int64_t time_ns) { return static_cast<double>(time_ns) / kSecond_ns; }

}  // namespace

std::vector<Activity> activities_of(const SimulatedRun& run, const std::vector<Scope>& scopes,
                                    const std::function<std::uint32_t(const SimulatedKernel&)>& scope_of_kernel) {
  std::vector<Activity> activities;
  std::size_t kernel_index = 0;
  for (std::int64_t begin_ns = run.begin_ns; begin_ns < run.end_ns; begin_ns += to_ns(1)) {
    Activity activity;
    activity.begin_ns = begin_ns;
    activity.end_ns = std::min(begin_ns + to_ns(1), run.end_ns);
    if (activities.empty()) {
      activity.queues = {{0, "GPU-1", 0, 1, 7}};
      activity.scopes = scopes;
      for (std::uint32_t kind = 0; kind < run.busy_s.size(); ++kind) {
        activity.classes.push_back({kind, KernelKind::kernel, "kind" + std::to_string(kind), {64, 1, 1}, {256, 1, 1}});
      }
    }
    std::map<std::pair<std::uint32_t, std::uint32_t>, KernelTally> tallies;
    for (; kernel_index < run.kernels.size() && run.kernels[kernel_index].start_ns < activity.end_ns; ++kernel_index) {
      const SimulatedKernel& kernel = run.kernels[kernel_index];
      const std::uint32_t scope = scope_of_kernel(kernel);
      activity.kernels.push_back({kernel.start_ns, kernel.end_ns, kernel.kind, 0, scope, 0, 0});
      KernelTally& tally =
          tallies.try_emplace({kernel.kind, scope}, KernelTally{kernel.kind, 0, scope, 0, 0}).first->second;
      ++tally.count;
      tally.time_ns += kernel.end_ns - kernel.start_ns;
    }
    for (const auto& [key, tally] : tallies) activity.kernel_tallies.push_back(tally);
    activities.push_back(std::move(activity));
  }
  return activities;
}

Channel SimulatedGpu::channel() {
  Channel channel;
  channel.name = "gpu0-energy";
  channel.sensor = "nvml";
  channel.domain = "gpu0";
  channel.domain_class = DomainClass::gpu;
  channel.device = "GPU-1";
  channel.scale = 1e-3;
  channel.refresh_s = 0.1;
  return channel;
}

void SimulatedGpu::simulate_pause(SimulatedRun& run, std::int64_t length_ns) {
  segments_.push_back({now_ns_, now_ns_ + length_ns, parameters_.idle_w});
  run.idle_j += to_s(length_ns) * parameters_.idle_w;
  now_ns_ += length_ns;
}

// The clock state changes independently of what runs.
double SimulatedGpu::update_slowdown(std::uint32_t kind) {
  if (parameters_.slowdown <= 1) return 1;
  while (clocks_until_ns_ <= now_ns_) {
    are_clocks_reduced_ = !are_clocks_reduced_;
    const double time_share = are_clocks_reduced_ ? parameters_.slowed_share : 1 - parameters_.slowed_share;
    clocks_until_ns_ = std::max(clocks_until_ns_, now_ns_) + to_ns(2 * time_share * uniform(0.03, 0.3));
  }
  return are_clocks_reduced_ && kind < parameters_.compute_bound_classes ? parameters_.slowdown : 1;
}

void SimulatedGpu::add_burst(SimulatedRun& run, std::uint32_t kind, std::int64_t until_ns) {
  const double full_speed_w =
      parameters_.watts[kind] * (1 + parameters_.burst_spread * std::normal_distribution<>()(random_));
  run.slowed_s.resize(parameters_.watts.size());
  run.slowed_j.resize(parameters_.watts.size());
  while (now_ns_ < until_ns) {
    const double slowdown = update_slowdown(kind);
    const std::int64_t length_ns = to_ns(to_s(parameters_.kernel_ns) * slowdown);
    const double watts = parameters_.idle_w + (full_speed_w - parameters_.idle_w) / std::pow(slowdown, 3);
    const std::int64_t end_ns = now_ns_ + length_ns;
    run.kernels.push_back({now_ns_, end_ns, kind});
    segments_.push_back({now_ns_, end_ns, watts});
    run.busy_s[kind] += to_s(length_ns);
    run.joules[kind] += to_s(length_ns) * watts;
    if (slowdown > 1) {
      run.slowed_s[kind] += to_s(length_ns);
      run.slowed_j[kind] += to_s(length_ns) * watts;
    }
    now_ns_ = end_ns;
    simulate_pause(run, parameters_.gap_ns);
  }
}

SimulatedRun SimulatedGpu::simulate_mixture(double length_s) {
  SimulatedRun run{
      {}, {}, {}, std::vector<double>(parameters_.watts.size()), std::vector<double>(parameters_.watts.size())};
  run.begin_ns = now_ns_ = kStart_ns;
  segments_.clear();
  simulate_pause(run, to_ns(0.6));
  while (to_s(now_ns_ - run.begin_ns) < length_s) {
    const auto kind = static_cast<std::uint32_t>(random_() % parameters_.watts.size());
    add_burst(run, kind, now_ns_ + to_ns(uniform(0.002, 0.060)));
    if (random_() % 5 == 0) simulate_pause(run, to_ns(uniform(0.001, 0.040)));
  }
  simulate_counter(run);
  return run;
}

void SimulatedGpu::simulate_loop(SimulatedRun& run, double length_s, std::size_t kernels_per_class,
                                 const DitherSettings& dither) {
  run.begin_ns = now_ns_ = kStart_ns;
  segments_.clear();
  simulate_pause(run, to_ns(0.6));
  const auto draw_pause_distance_ns = [&] {
    const double usual_s = (dither.shortest_s + dither.longest_s) / 2 / std::max(dither.share, 1e-12);
    return to_ns(std::min(usual_s * -std::log(uniform(1e-9, 1)), 1e6));
  };
  std::int64_t next_pause_ns = dither.share > 0 ? now_ns_ + draw_pause_distance_ns() : INT64_MAX;
  while (to_s(now_ns_ - run.begin_ns) < length_s) {
    for (std::uint32_t kind = 0; kind < parameters_.watts.size(); ++kind) {
      const std::int64_t iteration_ns = parameters_.kernel_ns + parameters_.gap_ns;
      if (now_ns_ >= next_pause_ns) {
        simulate_pause(run, to_ns(uniform(dither.shortest_s, dither.longest_s)));
        next_pause_ns = now_ns_ + draw_pause_distance_ns();
      }
      add_burst(run, kind, now_ns_ + static_cast<std::int64_t>(kernels_per_class) * iteration_ns - parameters_.gap_ns);
    }
    simulate_pause(run, to_ns(uniform(0.0002, 0.0004)));
  }
}

SimulatedRun SimulatedGpu::steady_loop(double length_s, std::size_t kernels_per_class) {
  return dithered_loop(length_s, kernels_per_class, {.share = 0});
}

SimulatedRun SimulatedGpu::dithered_loop(double length_s, std::size_t kernels_per_class, const DitherSettings& dither) {
  SimulatedRun run{
      {}, {}, {}, std::vector<double>(parameters_.watts.size()), std::vector<double>(parameters_.watts.size())};
  simulate_loop(run, length_s, kernels_per_class, dither);
  simulate_counter(run);
  return run;
}

// Forward and backward pass of a module: mostly kernels of its own class, some of other classes.
void SimulatedGpu::replay(SimulatedRun& run, std::uint32_t module, std::int64_t until_ns) {
  const auto kinds = static_cast<std::uint32_t>(parameters_.watts.size());
  while (now_ns_ < until_ns) {
    for (const auto& [kind, kernels] : {std::pair(module, 6), std::pair(module + 1, 2), std::pair(module + 3, 1)}) {
      const std::int64_t iteration_ns = parameters_.kernel_ns + parameters_.gap_ns;
      add_burst(run, kind % kinds, now_ns_ + kernels * iteration_ns - parameters_.gap_ns);
    }
  }
}

SimulatedRun SimulatedGpu::probed_loop(double length_s, std::size_t kernels_per_class, double probe_s) {
  const std::size_t kinds = parameters_.watts.size();
  SimulatedRun run{{}, {}, {}, std::vector<double>(kinds), std::vector<double>(kinds)};
  simulate_loop(run, length_s, kernels_per_class, {.share = 0});
  run.loop_joules = run.joules;
  run.probe_begin_ns = now_ns_;
  simulate_pause(run, to_ns(0.6));
  std::vector<std::uint32_t> order(kinds);
  std::iota(order.begin(), order.end(), 0);
  while (to_s(now_ns_ - run.probe_begin_ns) < probe_s) {
    std::shuffle(order.begin(), order.end(), random_);
    for (const std::uint32_t module : order) {
      replay(run, module, now_ns_ + to_ns(uniform(0.1, 0.3)));
      simulate_pause(run, 30'000);
    }
  }
  simulate_counter(run);
  return run;
}

// The gauge's value at each sampling time of the driver.
void SimulatedGpu::record_history(SimulatedRun& run) {
  std::mt19937_64 chance(run.kernels.size());  // separate generator: leaves the counter's reads unchanged
  const auto random_delay_s = [&](double max_delay_s) {
    return max_delay_s * std::uniform_real_distribution<>()(chance);
  };
  double shown_w = parameters_.idle_w;
  double next_s = to_s(run.begin_ns) + random_delay_s(parameters_.history_period_s);
  double read_s = next_s + random_delay_s(parameters_.history_max_delay_s);
  for (const PowerSegment& segment : segments_) {
    double now_s = to_s(segment.start_ns);
    const auto advance = [&](double until_s) {
      shown_w = segment.watts + (shown_w - segment.watts) * std::exp((now_s - until_s) / parameters_.time_constant_s);
      now_s = until_s;
    };
    for (; read_s < to_s(segment.end_ns); read_s = next_s + random_delay_s(parameters_.history_max_delay_s)) {
      advance(read_s);
      const double history_w = shown_w + parameters_.history_noise_w * std::normal_distribution<>()(chance);
      run.history.push_back(
          {0, {static_cast<std::uint64_t>(history_w * 1e3), to_ns(read_s), to_ns(read_s), ReadCode::ok}});
      next_s += parameters_.history_period_s;
    }
    advance(to_s(segment.end_ns));
  }
}

// Computes the counter's value at each update, and the reads.
void SimulatedGpu::simulate_counter(SimulatedRun& run) {
  simulate_pause(run, to_ns(0.6));
  run.end_ns = now_ns_;
  record_history(run);
  const double first_s = to_s(run.begin_ns) - 1 + uniform(0, parameters_.period_s);
  const double counter_gain = 1 + parameters_.gain_spread * std::normal_distribution<>()(random_);
  std::vector<double> counter_j;
  double joules = 1000;
  double noise_j = 0;
  std::size_t segment_index = 0;
  double known_s = first_s - parameters_.lag_s;
  const auto updates = static_cast<std::size_t>((to_s(run.end_ns) + 1 - first_s) / parameters_.period_s) + 1;
  for (std::size_t update = 0; update < updates; ++update) {
    const double until_s = first_s + static_cast<double>(update) * parameters_.period_s - parameters_.lag_s;
    while (known_s < until_s) {
      while (segment_index < segments_.size() && to_s(segments_[segment_index].end_ns) <= known_s) ++segment_index;
      const bool idle = segment_index == segments_.size() || to_s(segments_[segment_index].start_ns) > known_s;
      double end_s = until_s;
      if (idle && segment_index < segments_.size()) end_s = std::min(end_s, to_s(segments_[segment_index].start_ns));
      if (!idle) end_s = std::min(end_s, to_s(segments_[segment_index].end_ns));
      joules += (end_s - known_s) * (idle ? parameters_.idle_w : segments_[segment_index].watts);
      known_s = std::max(end_s, std::nextafter(known_s, 1e18));
    }
    noise_j += parameters_.noise_j * std::normal_distribution<>()(random_);
    counter_j.push_back(counter_gain * joules + noise_j);
  }
  double at_s = to_s(run.begin_ns) - 0.3;
  const double end_s = to_s(run.end_ns) + 0.3;
  while (at_s < to_s(run.begin_ns) + kDenseReadsEnd_s) {
    read(run, at_s, first_s, counter_j);
    at_s += kReadDuration_s + 0.0005;
  }
  while (at_s < end_s) {
    const double update_s = first_s + std::ceil((at_s - first_s) / parameters_.period_s) * parameters_.period_s;
    // Sometimes just before an update, to locate it more exactly.
    if (uniform(0, 1) < 0.1) read(run, update_s - uniform(0.0005, 0.004), first_s, counter_j);
    if (uniform(0, 1) >= parameters_.missed_update_fraction) {
      const double late_s = uniform(0, 1) < parameters_.late_read_fraction ? uniform(0, 0.040) : 0;
      read(run, update_s + uniform(0.0045, 0.020) + late_s, first_s, counter_j);
    }
    at_s = update_s + 0.07 + (parameters_.updates_per_read - 1) * parameters_.period_s;
  }
  read(run, end_s, first_s, counter_j);
}

// The value of a read is that of its start, however long it takes.
void SimulatedGpu::read(SimulatedRun& run, double at_s, double first_update_s, const std::vector<double>& counter_j) {
  if (!run.samples.empty() && to_ns(at_s) <= run.samples.back().reading.after_ns) return;
  const auto update = static_cast<std::size_t>(std::max((at_s - first_update_s) / parameters_.period_s, 0.0));
  const double joules = counter_j[std::min(update, counter_j.size() - 1)];
  run.samples.push_back(
      {0, {static_cast<std::uint64_t>(joules * 1000), to_ns(at_s), to_ns(at_s + kReadDuration_s), ReadCode::ok}});
}

}  // namespace joulemap
