// SPDX-License-Identifier: Apache-2.0
#include "energy/energy_curves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/clock.h"
#include "energy/channel_faults.h"
#include "energy/make_domain_table.h"
#include "support/h200_phases.h"

namespace joulemap {
namespace {

H200Phases varying_load(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto random_between = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  };
  H200Phases gpu{.phases = {{2, 128}}, .seed = seed};
  for (int i = 0; i < 60; ++i)
    gpu.phases.push_back({random_between(0.03, 1.5), random() % 3 == 0 ? 128 : random_between(200, 700)});
  return gpu;
}

EnergyCurves make_energy_curves(const H200Phases& gpu) {
  EnergyCurves curves(H200Phases::channels());
  for (const Sample& sample : gpu.samples()) curves.observe(sample);
  return curves;
}

// Compares windows with the true counter values at its updates (bench/h200/window_accuracy.py does the same on a GPU).
TEST(EnergyCurves, WindowsBetweenRareReadsFollowThePowerHistory) {
  for (const double length_s : {0.2, 0.5, 1.0, 2.0}) {
    double squares = 0;
    int windows = 0;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const H200Phases gpu = varying_load(seed);
      const EnergyCurves curves = make_energy_curves(gpu);
      for (double from_s = gpu.begin_s + 3; from_s + length_s < gpu.end_s() - 1; from_s += 0.37) {
        const double begin_s = gpu.update_before(from_s);
        const double end_s = gpu.update_before(from_s + length_s);
        const ChannelEnergy energy = curves.curve_of_channel(0)->energy_between(
            H200Phases::to_ns(begin_s - H200Phases::kLag_s), H200Phases::to_ns(end_s - H200Phases::kLag_s));
        const double truth_j = gpu.counter_value_j(end_s + 1e-6) - gpu.counter_value_j(begin_s + 1e-6);
        ASSERT_TRUE(energy.joules);
        squares += std::pow(*energy.joules / truth_j - 1, 2);
        ++windows;
      }
    }
    EXPECT_LT(std::sqrt(squares / windows), 0.02) << length_s << " s, seeds 1 to 5";
  }
}

TEST(EnergyCurves, UncertaintyCoversWindowsBetweenRareReads) {
  int covered_window_count = 0;
  int windows = 0;
  for (std::uint64_t seed = 11; seed <= 15; ++seed) {
    const H200Phases gpu = varying_load(seed);
    const EnergyCurves curves = make_energy_curves(gpu);
    for (double from_s = gpu.begin_s + 3; from_s + 1 < gpu.end_s() - 1; from_s += 0.29, ++windows) {
      const ChannelEnergy energy =
          curves.curve_of_channel(0)->energy_between(H200Phases::to_ns(from_s), H200Phases::to_ns(from_s + 0.5));
      const double truth_j = gpu.compute_joules_until(from_s + 0.5) - gpu.compute_joules_until(from_s);
      covered_window_count += std::abs(energy.joules.value() - truth_j) <= energy.uncertainty_j ? 1 : 0;
    }
  }
  EXPECT_GE(covered_window_count, 95 * windows / 100) << windows << " windows, seeds 11 to 15";
}

// A recording stores a second of one channel after a second of another.
TEST(EnergyCurves, EnergyCurvesDoNotDependOnTheOrderOfChannels) {
  for (std::uint64_t seed = 21; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const H200Phases gpu = varying_load(seed);
    std::vector<Channel> channels = H200Phases::channels();
    channels.push_back(channels[0]);
    channels[2].name = "gpu0-power-average";
    channels[2].kind = ChannelKind::gauge;
    channels[2].quantity = Quantity::power;
    channels[2].averaging_time_s = 1;
    std::vector<Sample> samples = gpu.samples();
    for (double at_s = gpu.begin_s - 0.2; at_s < gpu.end_s(); at_s += 0.0103) {
      const auto raw_value = static_cast<std::uint64_t>(1e3 * gpu.watts_at(gpu.update_before(at_s)));
      samples.push_back({2, {raw_value, H200Phases::to_ns(at_s), H200Phases::to_ns(at_s) + 3000, ReadCode::ok}});
    }
    std::stable_sort(samples.begin(), samples.end(),
                     [](const Sample& a, const Sample& b) { return a.reading.after_ns < b.reading.after_ns; });
    EnergyCurves read_order_curves(channels);
    EnergyCurves reordered_curves(channels);
    for (const Sample& sample : samples) read_order_curves.observe(sample);
    const auto second_of = [](const Sample& sample) { return sample.reading.after_ns / kNanosecondsPerSecond; };
    std::stable_sort(samples.begin(), samples.end(), [&](const Sample& a, const Sample& b) {
      return std::pair(second_of(a), a.channel) < std::pair(second_of(b), b.channel);
    });
    for (const Sample& sample : samples) reordered_curves.observe(sample);
    for (std::int64_t at_ns = gpu.begin_ns(); at_ns < gpu.end_ns(); at_ns += 97 * kNanosecondsPerMillisecond) {
      ASSERT_EQ(read_order_curves.curve_of_channel(0)->joules_at(at_ns),
                reordered_curves.curve_of_channel(0)->joules_at(at_ns));
      ASSERT_EQ(read_order_curves.curve_of_channel(2)->joules_at(at_ns),
                reordered_curves.curve_of_channel(2)->joules_at(at_ns));
    }
  }
}

Channel gauge_channel() {
  Channel channel;
  channel.name = "power1";
  channel.domain = "package-0";
  channel.kind = ChannelKind::gauge;
  channel.quantity = Quantity::power;
  channel.scale = 1e-3;
  channel.refresh_s = 0.02;
  return channel;
}

void read_gauge(EnergyCurve& curve, std::int64_t from_ms, std::int64_t to_ms, double (*watts_at)(std::int64_t)) {
  for (std::int64_t at_ms = from_ms; at_ms <= to_ms; at_ms += 20) {
    const auto raw_value = static_cast<std::uint64_t>(1e3 * watts_at(at_ms));
    curve.observe({raw_value, at_ms * kNanosecondsPerMillisecond, at_ms * kNanosecondsPerMillisecond, ReadCode::ok});
  }
}

TEST(EnergyCurves, APauseInAGaugeIsMissingTimeAndTheIntervalCoversItsRange) {
  EnergyCurve curve(gauge_channel());
  // 100 W with peaks of 400 W; then ten minutes without a reading.
  const auto watts = [](std::int64_t at_ms) { return at_ms / 1000 % 5 == 0 ? 400.0 : 100.0; };
  read_gauge(curve, 0, 19'980, watts);
  read_gauge(curve, 619'980, 640'000, watts);
  const ChannelEnergy energy =
      curve.energy_between(1'000 * kNanosecondsPerMillisecond, 639'000 * kNanosecondsPerMillisecond);
  ASSERT_TRUE(energy.joules);
  EXPECT_NEAR(energy.missing_s, 600, 0.1);
  EXPECT_NEAR(energy.interpolated_s, 600, 0.1);
  EXPECT_NEAR(*energy.joules, 38 * 160 + 600 * 100, 400);
  EXPECT_GT(energy.uncertainty_j, 600 * 290.0) << "it may have been 400 W all the time";
  EXPECT_LT(energy.uncertainty_j, 600 * 320.0);
  EXPECT_TRUE(describe_faults(energy).contains("readings_missing"));
  const DomainTable table = make_domain_table(std::vector<ChannelEnergy>{energy}, 638);
  EXPECT_NEAR(table.rows.at(0).mean_w.value(), *energy.joules / 638, 1e-6) << "the energy of the pause is part of it";

  const ChannelEnergy energy_before_pause =
      curve.energy_between(1'000 * kNanosecondsPerMillisecond, 19'000 * kNanosecondsPerMillisecond);
  EXPECT_EQ(energy_before_pause.missing_s, 0);
  EXPECT_FALSE(describe_faults(energy_before_pause).contains("readings_missing"));
}

TEST(EnergyCurves, AGaugeReadAtAConstantPeriodHasNoPause) {
  for (const std::int64_t period_ms : {1, 20, 300, 5'000}) {
    EnergyCurve curve(gauge_channel());
    for (std::int64_t at_ms = 0; at_ms <= 60'000; at_ms += period_ms)
      curve.observe({100'000, at_ms * kNanosecondsPerMillisecond, at_ms * kNanosecondsPerMillisecond, ReadCode::ok});
    EXPECT_EQ(curve.energy_between(kNanosecondsPerSecond, 59 * kNanosecondsPerSecond).missing_s, 0)
        << period_ms << " ms";
  }
}

TEST(EnergyCurves, ACounterBridgesAPauseAndReportsIt) {
  Channel channel;
  channel.domain = channel.name = "package-0";
  channel.scale = 1e-6;
  EnergyCurve curve(channel);
  const auto observe_readings = [&](std::int64_t from_ms, std::int64_t to_ms) {
    for (std::int64_t at_ms = from_ms; at_ms <= to_ms; at_ms += 50)
      curve.observe({static_cast<std::uint64_t>(at_ms) * 100'000, at_ms * kNanosecondsPerMillisecond,
                     at_ms * kNanosecondsPerMillisecond, ReadCode::ok});
  };
  observe_readings(0, 10'000);
  observe_readings(70'000, 80'000);
  const ChannelEnergy energy =
      curve.energy_between(1'000 * kNanosecondsPerMillisecond, 79'000 * kNanosecondsPerMillisecond);
  EXPECT_NEAR(energy.joules.value(), 7800, 1);
  EXPECT_EQ(energy.missing_s, 0);
  EXPECT_LT(energy.uncertainty_j, 20);
  EXPECT_NEAR(energy.total_pause_s, 60, 1e-6);
  EXPECT_TRUE(describe_faults(energy).contains("readings_paused"));
}

TEST(EnergyCurves, ARunOfDaysPreservesItsEdgesAndEnergy) {
  Channel channel;
  channel.domain = channel.name = "package-0";
  channel.scale = 1e-6;
  EnergyCurve curve(channel);
  const auto joules_at = [](std::int64_t at_ms) { return 0.1 * static_cast<double>(at_ms); };  // 100 W
  constexpr std::int64_t kBegin_ms = 5'021;
  constexpr std::int64_t kEnd_ms = 48 * 3'600'000 + 33;
  curve.retain_points_around(kBegin_ms * kNanosecondsPerMillisecond);
  curve.retain_points_around(kEnd_ms * kNanosecondsPerMillisecond);
  for (std::int64_t at_ms = 0; at_ms <= kEnd_ms + 1000; at_ms += 50)
    curve.observe({static_cast<std::uint64_t>(joules_at(at_ms) * 1e6), at_ms * kNanosecondsPerMillisecond,
                   at_ms * kNanosecondsPerMillisecond, ReadCode::ok});
  const ChannelEnergy energy =
      curve.energy_between(kBegin_ms * kNanosecondsPerMillisecond, kEnd_ms * kNanosecondsPerMillisecond);
  EXPECT_NEAR(energy.joules.value(), joules_at(kEnd_ms) - joules_at(kBegin_ms), 1e-3);
  EXPECT_LT(energy.uncertainty_j, 20);
  const std::optional<double> power_w =
      curve.mean_w({1'000'000 * kNanosecondsPerMillisecond, 1'010'000 * kNanosecondsPerMillisecond});
  EXPECT_NEAR(power_w.value(), 100, 1e-3);
}

}  // namespace
}  // namespace joulemap
