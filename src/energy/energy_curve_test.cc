// SPDX-License-Identifier: Apache-2.0
#include "energy/energy_curve.h"
#include "base/clock.h"
#include "energy/channel_faults.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace joulemap {
namespace {

constexpr std::int64_t kMicrosecond_ns = 1000;

Channel make_package_channel() {
  Channel channel;
  channel.domain = channel.name = "package-0";
  channel.scale = 1e-6;
  channel.wrap_range = 262'143'328'850;
  return channel;
}

Channel make_power_gauge_channel() {
  Channel channel = make_package_channel();
  channel.kind = ChannelKind::gauge;
  channel.quantity = Quantity::power;
  channel.wrap_range.reset();
  return channel;
}

Reading valid_reading(std::int64_t time_ns, double value) {
  return {static_cast<std::uint64_t>(std::llround(value * 1e6)), time_ns, time_ns, ReadCode::ok};
}

// A counter of a machine with 20 W until `busy_from_ns` and 100 W from then on, which updates every `refresh_ns`.
struct SteppedCounter {
  std::int64_t refresh_ns = kNanosecondsPerMillisecond;
  std::int64_t phase_ns = 0;
  std::int64_t busy_from_ns = 0;
  std::int64_t frozen_from_ns = INT64_MAX;

  double energy_j(std::int64_t time_ns) const {
    const auto busy_ns = static_cast<double>(std::max<std::int64_t>(time_ns - busy_from_ns, 0));
    return (20.0 * static_cast<double>(time_ns) + 80.0 * busy_ns) * 1e-9;
  }
  Reading at(std::int64_t time_ns) const {
    const std::int64_t seen_ns = std::min(time_ns, frozen_from_ns);
    const std::int64_t updated_ns = (seen_ns - phase_ns) / refresh_ns * refresh_ns + phase_ns;
    return valid_reading(time_ns, energy_j(updated_ns));
  }
};

void add_readings(EnergyCurve& curve, const SteppedCounter& machine, std::int64_t from_ns, std::int64_t to_ns,
                  std::int64_t period_ns) {
  for (std::int64_t now_ns = from_ns; now_ns < to_ns; now_ns += period_ns) curve.observe(machine.at(now_ns));
}

ChannelEnergy between(const EnergyCurve& curve, std::int64_t begin_ns, std::int64_t end_ns) {
  const auto begin = curve.edge_energy_at(begin_ns);
  const auto end = curve.edge_energy_at(end_ns);
  EXPECT_TRUE(begin && end);
  return curve.energy_between(*begin, *end, {});
}

TEST(EnergyCurve, ReturnsTheEnergyOfOverlappingWindowsFromOneStream) {
  const SteppedCounter machine;
  EnergyCurve curve(make_package_channel(), EnergyCurve::Retention::latest);
  add_readings(curve, machine, kNanosecondsPerSecond, 3 * kNanosecondsPerSecond, 5 * kNanosecondsPerMillisecond);
  for (std::int64_t i = 0; i < 100; ++i) {
    const std::int64_t begin_ns =
        kNanosecondsPerSecond + 100 * kNanosecondsPerMillisecond + i * 3 * kNanosecondsPerMillisecond;
    const std::int64_t end_ns =
        3 * kNanosecondsPerSecond - 100 * kNanosecondsPerMillisecond - i * 7 * kNanosecondsPerMillisecond;
    const ChannelEnergy energy = between(curve, begin_ns, end_ns);
    ASSERT_TRUE(energy.joules);
    EXPECT_NEAR(*energy.joules, machine.energy_j(end_ns) - machine.energy_j(begin_ns), 0.1);
    EXPECT_GT(energy.uncertainty_j, 0.0);
  }
}

// Property: the interval covers the truth in the hardest case, when the power changes at the edge of the window.
TEST(EnergyCurve, UncertaintyCoversAPowerChangeAtTheEdge) {
  for (const std::int64_t refresh_ms : {1, 10, 100}) {
    for (const std::int64_t period_us : {100, 1'000, 5'000, 50'000}) {
      for (const std::int64_t length_ms : {1, 10, 100, 1'000}) {
        SCOPED_TRACE(testing::Message() << refresh_ms << " ms, read every " << period_us << " us, window of "
                                        << length_ms << " ms, seed 11");
        std::mt19937_64 random(11);
        int covered_trial_count = 0;
        constexpr int kTrials = 100;
        for (int trial = 0; trial < kTrials; ++trial) {
          const auto offset_ns = static_cast<std::int64_t>(random() % 100'000'000);
          const std::int64_t begin_ns = 2 * kNanosecondsPerSecond + offset_ns;
          const std::int64_t end_ns = begin_ns + length_ms * kNanosecondsPerMillisecond;
          const std::int64_t refresh_ns = refresh_ms * kNanosecondsPerMillisecond;
          const SteppedCounter machine{
              .refresh_ns = refresh_ns,
              .phase_ns = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(refresh_ns)),
              .busy_from_ns = begin_ns};
          EnergyCurve curve(make_package_channel(), EnergyCurve::Retention::latest);
          add_readings(curve, machine, kNanosecondsPerSecond, end_ns + 300 * kNanosecondsPerMillisecond,
                       period_us * kMicrosecond_ns);
          const ChannelEnergy energy = between(curve, begin_ns, end_ns);
          ASSERT_TRUE(energy.joules);
          EXPECT_GT(*energy.joules, 0.0);
          const double truth_j = machine.energy_j(end_ns) - machine.energy_j(begin_ns);
          covered_trial_count += std::abs(*energy.joules - truth_j) <= energy.uncertainty_j ? 1 : 0;
        }
        EXPECT_GE(covered_trial_count, kTrials * 94 / 100);
      }
    }
  }
}

// The reading thread was preempted for 70 ms during a read, before or after it took the value.
TEST(EnergyCurve, UncertaintyCoversAReadThatTookLong) {
  const SteppedCounter machine;
  const std::int64_t edge_ns = 2 * kNanosecondsPerSecond;
  for (const std::int64_t value_after_ns : {std::int64_t{0}, 70 * kNanosecondsPerMillisecond}) {
    for (const bool at_end : {false, true}) {
      EnergyCurve curve(make_package_channel());
      const std::int64_t slow_read_begin_ns = edge_ns - 35 * kNanosecondsPerMillisecond;
      add_readings(curve, machine, kNanosecondsPerSecond, slow_read_begin_ns, kNanosecondsPerMillisecond);
      Reading slow_reading = machine.at(slow_read_begin_ns + value_after_ns);
      slow_reading.before_ns = slow_read_begin_ns;
      slow_reading.after_ns = slow_read_begin_ns + 70 * kNanosecondsPerMillisecond;
      curve.observe(slow_reading);
      add_readings(curve, machine, slow_reading.after_ns + kNanosecondsPerMillisecond, 3 * kNanosecondsPerSecond,
                   kNanosecondsPerMillisecond);
      const std::int64_t begin_ns = at_end ? kNanosecondsPerSecond + 100 * kNanosecondsPerMillisecond : edge_ns;
      const std::int64_t end_ns = at_end ? edge_ns : 3 * kNanosecondsPerSecond - 100 * kNanosecondsPerMillisecond;
      const ChannelEnergy energy = between(curve, begin_ns, end_ns);
      const double truth_j = machine.energy_j(end_ns) - machine.energy_j(begin_ns);
      EXPECT_NEAR(*energy.joules, truth_j, energy.uncertainty_j) << value_after_ns << " " << at_end;
      EXPECT_LT(energy.uncertainty_j, 15);
    }
  }
}

TEST(EnergyCurve, InterpolatesAWindowShorterThanARefreshInsteadOfReadingZero) {
  const SteppedCounter machine;
  EnergyCurve curve(make_package_channel(), EnergyCurve::Retention::latest);
  add_readings(curve, machine, kNanosecondsPerSecond, 2 * kNanosecondsPerSecond, 100 * kMicrosecond_ns);
  for (std::int64_t offset_us = 0; offset_us < 1000; offset_us += 50) {
    const std::int64_t begin_ns =
        2 * kNanosecondsPerSecond - 20 * kNanosecondsPerMillisecond + offset_us * kMicrosecond_ns;
    const ChannelEnergy energy = between(curve, begin_ns, begin_ns + 200 * kMicrosecond_ns);
    ASSERT_TRUE(energy.joules);
    EXPECT_NEAR(*energy.joules, 0.02, 0.005);
    EXPECT_GT(energy.uncertainty_j, 0.02);  // one increment decides the value
  }
}

TEST(EnergyCurve, SettlesAnEdgeWithTheFirstPointAfterIt) {
  const SteppedCounter machine;
  EnergyCurve curve(make_package_channel(), EnergyCurve::Retention::latest);
  add_readings(curve, machine, kNanosecondsPerSecond, 2 * kNanosecondsPerSecond, 5 * kNanosecondsPerMillisecond);
  const std::int64_t edge_ns = 2 * kNanosecondsPerSecond;
  EXPECT_FALSE(curve.edge_energy_at(edge_ns)->is_settled);
  EXPECT_EQ(curve.count_points_after(edge_ns), 0u);
  const double extrapolated_j = curve.edge_energy_at(edge_ns)->cumulative_energy.joules;
  add_readings(curve, machine, edge_ns, edge_ns + 10 * kNanosecondsPerMillisecond, 5 * kNanosecondsPerMillisecond);
  EXPECT_TRUE(curve.edge_energy_at(edge_ns)->is_settled);
  EXPECT_NEAR(curve.edge_energy_at(edge_ns)->cumulative_energy.joules, extrapolated_j, 0.1);
}

TEST(EnergyCurve, AStoredEdgeServesAWindowOfHours) {
  const SteppedCounter machine;
  EnergyCurve curve(make_package_channel(), EnergyCurve::Retention::latest);
  add_readings(curve, machine, kNanosecondsPerSecond, 2 * kNanosecondsPerSecond, 5 * kNanosecondsPerMillisecond);
  const std::int64_t begin_ns = 2 * kNanosecondsPerSecond - 50 * kNanosecondsPerMillisecond;
  const WindowEdgeEnergy begin = *curve.edge_energy_at(begin_ns);
  const std::int64_t end_ns = 4000 * kNanosecondsPerSecond;
  add_readings(curve, machine, 2 * kNanosecondsPerSecond, end_ns + kNanosecondsPerSecond,
               50 * kNanosecondsPerMillisecond);
  EXPECT_FALSE(curve.edge_energy_at(begin_ns));  // the retained past does not reach back that far
  const ChannelEnergy energy = curve.energy_between(begin, *curve.edge_energy_at(end_ns), {});
  EXPECT_NEAR(*energy.joules, machine.energy_j(end_ns) - machine.energy_j(begin_ns), 1.0);
}

TEST(EnergyCurve, ReportsWhyThereIsNoEnergyYet) {
  const SteppedCounter machine;
  EnergyCurve curve(make_package_channel(), EnergyCurve::Retention::latest);
  add_readings(curve, machine, kNanosecondsPerSecond, 2 * kNanosecondsPerSecond, 5 * kNanosecondsPerMillisecond);
  const ChannelEnergy energy =
      between(curve, 2 * kNanosecondsPerSecond, 2 * kNanosecondsPerSecond + kNanosecondsPerMillisecond);
  EXPECT_FALSE(energy.joules);
  EXPECT_EQ(energy.missing_reason, "too-short");
}

TEST(EnergyCurve, HasNoEnergyOfAWindowThatNoReadingCovers) {
  Channel gauge = make_package_channel();
  gauge.kind = ChannelKind::gauge;
  EnergyCurve curve(gauge);
  for (const std::int64_t time_ns : {kNanosecondsPerSecond, kNanosecondsPerSecond + kNanosecondsPerMillisecond,
                                     kNanosecondsPerSecond + 2 * kNanosecondsPerMillisecond}) {
    curve.observe({7'000'000, time_ns, time_ns, ReadCode::ok});
  }
  const std::int64_t begin_ns = kNanosecondsPerSecond + kNanosecondsPerMillisecond;
  for (const std::int64_t end_ns : {begin_ns + kNanosecondsPerSecond, begin_ns + 60 * kNanosecondsPerSecond}) {
    const ChannelEnergy energy = curve.energy_between(begin_ns, end_ns);
    EXPECT_FALSE(energy.joules);
    EXPECT_EQ(energy.missing_reason, "too-short");
  }
  EXPECT_NEAR(*curve.energy_between(kNanosecondsPerSecond, begin_ns).joules, 7e-3, 1e-4);
}

TEST(EnergyCurve, HasNoEnergyForAFrozenCounter) {
  const SteppedCounter machine{.frozen_from_ns = 2 * kNanosecondsPerSecond};
  EnergyCurve curve(make_package_channel(), EnergyCurve::Retention::latest);
  add_readings(curve, machine, kNanosecondsPerSecond, 4 * kNanosecondsPerSecond, 5 * kNanosecondsPerMillisecond);
  const ChannelEnergy energy_within_freeze =
      between(curve, 3 * kNanosecondsPerSecond, 3 * kNanosecondsPerSecond + kNanosecondsPerMillisecond);
  EXPECT_FALSE(energy_within_freeze.joules);
  EXPECT_EQ(energy_within_freeze.missing_reason, "frozen");

  const ChannelEnergy energy_across_freeze =
      between(curve, kNanosecondsPerSecond + 500 * kNanosecondsPerMillisecond, 4 * kNanosecondsPerSecond);
  EXPECT_NEAR(*energy_across_freeze.joules, 50.0, 0.5);  // valid energy is retained
  EXPECT_NEAR(energy_across_freeze.frozen_tail_s, 2.0, 0.01);
  EXPECT_GT(*energy_across_freeze.joules + energy_across_freeze.uncertainty_j, 250.0);
}

TEST(EnergyCurve, ARevertedTornReadAddsNoPoint) {
  EnergyCurve curve(make_package_channel(), EnergyCurve::Retention::latest);
  curve.observe(valid_reading(1 * kNanosecondsPerMillisecond, 100.0));
  curve.observe(valid_reading(2 * kNanosecondsPerMillisecond, 100.1));
  curve.observe(valid_reading(3 * kNanosecondsPerMillisecond, 105.0));  // torn, but plausible
  curve.observe(valid_reading(4 * kNanosecondsPerMillisecond, 100.3));
  curve.observe(valid_reading(5 * kNanosecondsPerMillisecond, 100.4));
  const ChannelEnergy energy = between(curve, 2 * kNanosecondsPerMillisecond, 4 * kNanosecondsPerMillisecond);
  EXPECT_NEAR(*energy.joules, 0.2, 0.1);
  EXPECT_EQ(energy.tally.failure_counts[static_cast<std::size_t>(ReadCode::torn)], 1u);
}

TEST(EnergyCurve, IntegratesAGaugeWithAnUncertaintyForMissedChanges) {
  EnergyCurve curve(make_power_gauge_channel());
  for (std::int64_t i = 0; i <= 100; ++i)
    curve.observe(valid_reading(i * 20 * kNanosecondsPerMillisecond, i % 2 == 0 ? 90.0 : 110.0));
  const ChannelEnergy energy = between(curve, 100 * kNanosecondsPerMillisecond, 1'100 * kNanosecondsPerMillisecond);
  EXPECT_NEAR(*energy.joules, 100.0, 0.5);
  EXPECT_GT(energy.uncertainty_j, 0.5);
  EXPECT_LT(energy.uncertainty_j, 3.0);
}

TEST(EnergyCurve, TheIntervalOfAPauseCoversTheRangeOfPowerOnce) {
  EnergyCurve curve(make_power_gauge_channel());
  for (std::int64_t i = 0; i < 10; ++i) curve.observe(valid_reading(i * kNanosecondsPerSecond / 10, 100));
  for (std::int64_t i = 0; i < 10; ++i) curve.observe(valid_reading((1010 + i) * kNanosecondsPerSecond / 10, 400));
  const ChannelEnergy energy = between(curve, 0, 101 * kNanosecondsPerSecond);
  EXPECT_NEAR(energy.interpolated_s, 100.1, 0.01);
  EXPECT_NEAR(energy.uncertainty_j, 150 * energy.interpolated_s, 1);
}

TEST(EnergyCurve, AShortWindowOfASteadyAveragingGaugeIsBoundedByItsPower) {
  Channel channel = make_power_gauge_channel();
  channel.averaging_time_s = 1;
  EnergyCurve curve(channel);
  for (std::int64_t i = 0; i < 100; ++i) curve.observe(valid_reading(i * 20 * kNanosecondsPerMillisecond, 44));
  const ChannelEnergy energy = between(curve, 0, kNanosecondsPerMillisecond);
  EXPECT_NEAR(*energy.joules, 0.044, 1e-9);
  EXPECT_LE(energy.uncertainty_j, 0.1);
}

TEST(EnergyCurve, TheIntervalOfAShortEstimateCoversTicksOfCpuTime) {
  Channel channel = make_package_channel();
  channel.provenance = Provenance::estimated;
  channel.refresh_s = 0.01;
  channel.relative_uncertainty = 0.6;
  channel.uncertainty_w = 1.4;  // 7 W at full load, 1.4 W idle
  EnergyCurve curve(channel);
  for (std::int64_t i = 0; i <= 1000; ++i)
    curve.observe(valid_reading(i * kNanosecondsPerMillisecond, 1.4e-3 * static_cast<double>(i)));
  const ChannelEnergy energy = between(curve, 0, kNanosecondsPerMillisecond);
  EXPECT_GT(energy.uncertainty_j, 5.6e-3) << "both CPUs may have been busy";
  EXPECT_LT(energy.uncertainty_j, 7e-3) << "but not more";
  EXPECT_TRUE(describe_faults(energy).contains("window_too_short"));
  const ChannelEnergy long_energy = between(curve, 0, kNanosecondsPerSecond);
  EXPECT_LT(long_energy.uncertainty_j, 1.7);
  EXPECT_FALSE(describe_faults(long_energy).contains("window_too_short"));
}

TEST(EnergyCurve, AWindowReportsFaultsSinceItsBeginning) {
  const SteppedCounter machine;
  EnergyCurve curve(make_package_channel(), EnergyCurve::Retention::latest);
  curve.observe({0, 1, 1, ReadCode::garbage});
  add_readings(curve, machine, kNanosecondsPerSecond, 2 * kNanosecondsPerSecond, 5 * kNanosecondsPerMillisecond);
  const EnergyTally at_begin = curve.tally();
  curve.observe({0, 2 * kNanosecondsPerSecond, 2 * kNanosecondsPerSecond, ReadCode::torn});
  add_readings(curve, machine, 2 * kNanosecondsPerSecond, 3 * kNanosecondsPerSecond, 5 * kNanosecondsPerMillisecond);
  const ChannelEnergy energy = curve.energy_between(*curve.edge_energy_at(2 * kNanosecondsPerSecond),
                                                    *curve.edge_energy_at(2 * kNanosecondsPerSecond + 1), at_begin);
  EXPECT_EQ(energy.tally.failure_counts[static_cast<std::size_t>(ReadCode::garbage)], 0u);
  EXPECT_EQ(energy.tally.failure_counts[static_cast<std::size_t>(ReadCode::torn)], 1u);
}

// Like an H200: updates every 100 ms, one or two reads in between at convenient times, each lasting milliseconds.
TEST(EnergyCurve, ReadTimesBetweenUpdatesDoNotMoveTheUpdates) {
  constexpr std::int64_t kPeriod_ns = 99'999'700;
  constexpr std::int64_t kPhase_ns = 37 * kNanosecondsPerMillisecond;
  constexpr double kPower_w = 500;
  const auto energy_j = [](std::int64_t time_ns) { return kPower_w * static_cast<double>(time_ns) * 1e-9; };
  Channel gpu = make_package_channel();
  gpu.wrap_range.reset();
  gpu.refresh_s = 0.1;
  EnergyCurve curve(gpu);
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto between_ms = [&](double low, double high) {
    return static_cast<std::int64_t>(1e6 * std::uniform_real_distribution<>(low, high)(random));
  };
  const auto read_at = [&](std::int64_t before_ns) {
    Reading reading = valid_reading(before_ns, energy_j((before_ns - kPhase_ns) / kPeriod_ns * kPeriod_ns + kPhase_ns));
    reading.after_ns = before_ns + between_ms(3, 10);
    curve.observe(reading);
  };
  for (std::int64_t update_ns = kPhase_ns + kPeriod_ns; update_ns < 20 * kNanosecondsPerSecond;
       update_ns += kPeriod_ns) {
    if (random() % 3 == 0) read_at(update_ns + between_ms(-3, 3));
    read_at(update_ns + between_ms(20, 60));
  }
  for (int i = 0; i < 50; ++i) {
    const std::int64_t begin_ns = 10 * kNanosecondsPerSecond + between_ms(0, 8000);
    const ChannelEnergy energy = between(curve, begin_ns, begin_ns + kNanosecondsPerSecond);
    ASSERT_TRUE(energy.joules);
    EXPECT_NEAR(*energy.joules, kPower_w, 0.003 * kPower_w);
  }
}

TEST(EnergyCurve, AnEdgeBeforeTheFirstReadingIsMissingTime) {
  const SteppedCounter machine;
  EnergyCurve curve(make_package_channel(), EnergyCurve::Retention::latest);
  EXPECT_FALSE(curve.edge_energy_at(kNanosecondsPerSecond));
  add_readings(curve, machine, 2 * kNanosecondsPerSecond, 3 * kNanosecondsPerSecond, 5 * kNanosecondsPerMillisecond);
  const ChannelEnergy energy =
      between(curve, kNanosecondsPerSecond, 3 * kNanosecondsPerSecond - 50 * kNanosecondsPerMillisecond);
  EXPECT_NEAR(energy.missing_s, 1.0, 0.01);
  EXPECT_GT(*energy.joules + energy.uncertainty_j, 195.0);
}

}  // namespace
}  // namespace joulemap
