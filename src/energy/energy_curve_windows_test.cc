// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "energy/energy_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace joulemap {
namespace {

constexpr std::int64_t kMicrosecond_ns = 1000;

// One window over a curve, and whether dense reading can stop, by the rule of Meter.
class MeteredWindow {
 public:
  explicit MeteredWindow(const Channel& channel, std::optional<std::int64_t> refresh_ns = {})
      : curve_(channel, EnergyCurve::Retention::all, refresh_ns) {}
  void observe(const Reading& reading) { curve_.observe(reading); }
  void begin(std::int64_t time_ns) { begin_ns_ = time_ns; }
  void end(std::int64_t time_ns) { end_ns_ = time_ns; }
  bool is_settled() const {
    if (end_ns_ != 0) return curve_.count_points_after(end_ns_) > 0 || !curve_.is_refresh_known();
    return curve_.is_refresh_known() && curve_.tally().update_count > 0;
  }
  std::int64_t refresh_ns() const { return curve_.is_refresh_known() ? curve_.refresh_ns() : 0; }
  ChannelEnergy result() const { return curve_.energy_between(begin_ns_, end_ns_); }

 private:
  EnergyCurve curve_;
  std::int64_t begin_ns_ = 0;
  std::int64_t end_ns_ = 0;
};

// A counter of constant power that updates every `refresh_ns`, first at `phase_ns`.
struct PeriodicCounter {
  double watts = 100;
  std::int64_t refresh_ns = kNanosecondsPerMillisecond;
  std::int64_t phase_ns = 0;
  std::int64_t frozen_from_ns = INT64_MAX;
  std::int64_t jitter_ns = 0;  // maximum delay of an update, deterministic for each update

  std::int64_t update_time_ns(std::int64_t number) const {
    const auto scatter = static_cast<std::int64_t>((static_cast<std::uint64_t>(number) * 2654435761u >> 8) % 1000);
    return number * refresh_ns + phase_ns + jitter_ns * scatter / 1000;
  }

  Reading at(std::int64_t time_ns) const {
    const std::int64_t seen_ns = std::min(time_ns, frozen_from_ns);
    std::int64_t number = (seen_ns - phase_ns) / refresh_ns;
    if (update_time_ns(number) > seen_ns) --number;
    const std::int64_t updated_ns = update_time_ns(number);
    const double joules = 1000 + watts * static_cast<double>(updated_ns) * 1e-9;
    return {static_cast<std::uint64_t>(std::llround(joules * 1e6)), time_ns, time_ns, ReadCode::ok};
  }
};

Channel make_package_channel() {
  Channel channel;
  channel.domain = channel.name = "package-0";
  channel.scale = 1e-6;
  channel.wrap_range = 262'143'328'850;
  return channel;
}

// Reads like the meter: every 0.1 ms before the window, every 1 ms at its beginning, every 20 ms within it, and finely
// after it. `late_ns` delays every read after the end, as on a busy machine.
ChannelEnergy measure(const PeriodicCounter& counter, std::int64_t begin_ns, std::int64_t end_ns,
                      std::int64_t late_ns = 0) {
  MeteredWindow window(make_package_channel());
  std::int64_t now_ns = begin_ns - 4 * kNanosecondsPerMillisecond;
  for (; now_ns < begin_ns; now_ns += 100 * kMicrosecond_ns) window.observe(counter.at(now_ns));
  window.observe(counter.at(begin_ns));
  window.begin(begin_ns);
  while (now_ns < end_ns) {
    const bool is_dense = !window.is_settled() && now_ns < begin_ns + 250 * kNanosecondsPerMillisecond;
    now_ns += is_dense ? kNanosecondsPerMillisecond : 20 * kNanosecondsPerMillisecond;
    if (now_ns < end_ns) window.observe(counter.at(now_ns));
  }
  window.observe(counter.at(end_ns + late_ns));
  window.end(end_ns);
  const std::int64_t fine_ns = std::max(100 * kMicrosecond_ns, window.refresh_ns() / 20);
  for (now_ns = end_ns + late_ns; !window.is_settled() && now_ns < end_ns + 150 * kNanosecondsPerMillisecond;
       now_ns += fine_ns) {
    window.observe(counter.at(now_ns));
  }
  return window.result();
}

constexpr std::int64_t kStart_ns = 10'000 * kNanosecondsPerMillisecond;

TEST(EnergyCurveWindows, ReturnsTheEnergyOfALongWindow) {
  const ChannelEnergy energy = measure({}, kStart_ns, kStart_ns + 10'000 * kNanosecondsPerMillisecond);
  ASSERT_TRUE(energy.joules);
  EXPECT_NEAR(*energy.joules, 1000.0, 0.05);  // half of the energy of an update
  EXPECT_LT(energy.uncertainty_j, 0.2);
}

TEST(EnergyCurveWindows, InterpolatesAWindowShorterThanARefreshInsteadOfReadingZero) {
  for (std::int64_t offset_us = 0; offset_us < 1000; offset_us += 50) {
    SCOPED_TRACE(offset_us);
    const std::int64_t begin_ns = kStart_ns + offset_us * kMicrosecond_ns;
    const ChannelEnergy energy = measure({}, begin_ns, begin_ns + 300 * kMicrosecond_ns);
    ASSERT_TRUE(energy.joules);
    EXPECT_GT(*energy.joules, 0.0);
    EXPECT_NEAR(*energy.joules, 0.03, 0.02);
    EXPECT_GT(energy.uncertainty_j, 0.0);
    EXPECT_LE(std::abs(*energy.joules - 0.03), energy.uncertainty_j);
  }
}

// Property: the stated interval covers the truth for counters of every update period and windows of every length and
// phase, with regular or jittering updates. No window of a live counter is zero.
TEST(EnergyCurveWindows, UncertaintyCoversTheError) {
  for (const std::int64_t refresh_ms : {1, 2, 5, 10, 50, 100, 500, 1000}) {
    for (const std::int64_t length_ms : {1, 3, 10, 30, 100, 300, 800, 1600, 5000}) {
      SCOPED_TRACE(testing::Message() << "refresh " << refresh_ms << " ms, window " << length_ms << " ms, seed 7");
      std::mt19937_64 random(7);
      int covered_trial_count = 0;
      int known_energy_count = 0;
      constexpr int kTrials = 60;
      for (int trial = 0; trial < kTrials; ++trial) {
        const std::int64_t refresh_ns = refresh_ms * kNanosecondsPerMillisecond;
        const PeriodicCounter counter{
            .refresh_ns = refresh_ns,
            .phase_ns = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(refresh_ns)),
            .jitter_ns = refresh_ns / 10};
        const std::int64_t length_ns =
            length_ms * kNanosecondsPerMillisecond + static_cast<std::int64_t>(random() % 1'000'000);
        const ChannelEnergy energy = measure(counter, kStart_ns, kStart_ns + length_ns);
        if (!energy.joules) {
          EXPECT_FALSE(energy.missing_reason.empty());
          continue;
        }
        ++known_energy_count;
        EXPECT_GT(*energy.joules, 0.0);
        covered_trial_count +=
            std::abs(*energy.joules - 100 * static_cast<double>(length_ns) * 1e-9) <= energy.uncertainty_j ? 1 : 0;
      }
      EXPECT_GE(covered_trial_count, known_energy_count * 94 / 100) << known_energy_count;
    }
  }
}

TEST(EnergyCurveWindows, ReusesTheUpdatePeriodOfAnEarlierWindow) {
  const PeriodicCounter counter{.refresh_ns = 50 * kNanosecondsPerMillisecond,
                                .phase_ns = 20 * kNanosecondsPerMillisecond};
  MeteredWindow window(make_package_channel(), 50 * kNanosecondsPerMillisecond);
  window.observe(counter.at(kStart_ns + 25 * kNanosecondsPerMillisecond));
  window.begin(kStart_ns + 25 * kNanosecondsPerMillisecond);
  window.observe(counter.at(kStart_ns + 45 * kNanosecondsPerMillisecond));
  window.end(kStart_ns + 45 * kNanosecondsPerMillisecond);  // 20 ms without an update
  for (std::int64_t ms = 46; !window.is_settled(); ++ms)
    window.observe(counter.at(kStart_ns + ms * kNanosecondsPerMillisecond));
  const ChannelEnergy energy = window.result();
  ASSERT_TRUE(energy.joules);
  EXPECT_NEAR(*energy.joules, 2.0, 0.2);
}

TEST(EnergyCurveWindows, InterpolatesACounterThatUpdatesEvery100Milliseconds) {
  const PeriodicCounter gpu{
      .watts = 700, .refresh_ns = 100 * kNanosecondsPerMillisecond, .phase_ns = 37 * kNanosecondsPerMillisecond};
  const ChannelEnergy energy = measure(gpu, kStart_ns, kStart_ns + 1'000 * kNanosecondsPerMillisecond);
  ASSERT_TRUE(energy.joules);
  EXPECT_NEAR(*energy.joules, 700.0, 8.0);  // without interpolation, each edge alone contributes up to 70 J
  EXPECT_NEAR(energy.refresh_s, 0.1, 0.002);
}

TEST(EnergyCurveWindows, TheIntervalCoversWhenTheLastReadingIsLate) {
  const PeriodicCounter counter{.refresh_ns = 3 * kNanosecondsPerMillisecond};
  for (std::int64_t late_us = 0; late_us < 30'000; late_us += 700) {
    SCOPED_TRACE(late_us);
    const std::int64_t late_ns = late_us * kMicrosecond_ns;
    const ChannelEnergy energy = measure(counter, kStart_ns, kStart_ns + 1000 * kNanosecondsPerMillisecond, late_ns);
    ASSERT_TRUE(energy.joules);
    EXPECT_NEAR(*energy.joules, 100.0, 0.15);  // half of an update's energy: its time is unknown
    EXPECT_NEAR(*energy.joules, 100.0, energy.uncertainty_j);
  }
}

TEST(EnergyCurveWindows, GivesNoNumberForACounterThatNeverMoves) {
  const ChannelEnergy energy = measure({.frozen_from_ns = 0}, kStart_ns, kStart_ns + 500 * kNanosecondsPerMillisecond);
  EXPECT_FALSE(energy.joules);
  EXPECT_EQ(energy.missing_reason, "frozen");
}

TEST(EnergyCurveWindows, GivesNoNumberForACounterThatFrozeJustBeforeTheWindow) {
  const ChannelEnergy energy = measure({.frozen_from_ns = kStart_ns - kNanosecondsPerMillisecond / 2}, kStart_ns,
                                       kStart_ns + 300 * kNanosecondsPerMillisecond);
  EXPECT_FALSE(energy.joules);
  EXPECT_EQ(energy.missing_reason, "frozen");
}

TEST(EnergyCurveWindows, ReportsEnergyUntilTheCounterFroze) {
  const ChannelEnergy energy = measure({.frozen_from_ns = kStart_ns + 2'000 * kNanosecondsPerMillisecond}, kStart_ns,
                                       kStart_ns + 5'000 * kNanosecondsPerMillisecond);
  ASSERT_TRUE(energy.joules);
  EXPECT_NEAR(*energy.joules, 200.0, 0.5);
  EXPECT_NEAR(energy.frozen_tail_s, 3.0, 0.05);
  EXPECT_GT(energy.uncertainty_j, 250.0);  // the interval covers the missing three seconds
}

TEST(EnergyCurveWindows, ReportsEnergyUntilTheFileVanished) {
  MeteredWindow window(make_package_channel());
  const PeriodicCounter counter;
  for (std::int64_t ms = 0; ms < 10; ++ms) window.observe(counter.at(kStart_ns + ms * kNanosecondsPerMillisecond));
  window.begin(kStart_ns + 9 * kNanosecondsPerMillisecond);
  for (std::int64_t ms = 20; ms <= 1000; ms += 20)
    window.observe(counter.at(kStart_ns + ms * kNanosecondsPerMillisecond));
  for (std::int64_t ms = 1020; ms <= 2000; ms += 20) {
    Reading vanished_reading = counter.at(kStart_ns + ms * kNanosecondsPerMillisecond);
    vanished_reading.code = ReadCode::vanished;
    window.observe(vanished_reading);
  }
  window.end(kStart_ns + 2'000 * kNanosecondsPerMillisecond);
  const ChannelEnergy energy = window.result();
  ASSERT_TRUE(energy.joules);
  EXPECT_NEAR(*energy.joules, 99.1, 0.2);
  EXPECT_NEAR(energy.missing_s, 1.0, 0.03);
  EXPECT_GT(energy.uncertainty_j, 90.0);
}

TEST(EnergyCurveWindows, CorrectsATornReadAtAnEdge) {
  MeteredWindow window(make_package_channel());
  const PeriodicCounter counter;
  for (std::int64_t ms = 0; ms <= 500; ms += 20) {
    window.observe(counter.at(kStart_ns + ms * kNanosecondsPerMillisecond));
    if (ms == 0) window.begin(kStart_ns);
  }
  Reading half_written = counter.at(kStart_ns + 510 * kNanosecondsPerMillisecond);
  half_written.raw += 999'999;
  window.observe(half_written);
  window.end(kStart_ns + 510 * kNanosecondsPerMillisecond);
  window.observe(counter.at(kStart_ns + 511 * kNanosecondsPerMillisecond));
  const ChannelEnergy energy = window.result();
  ASSERT_TRUE(energy.joules);
  EXPECT_NEAR(*energy.joules, 51.0, 0.2);
}

TEST(EnergyCurveWindows, HasNoEnergyFromASingleReading) {
  MeteredWindow window(make_package_channel());
  window.begin(kStart_ns);
  window.end(kStart_ns + kNanosecondsPerMillisecond);
  EXPECT_FALSE(window.result().joules);
}

// A load begins with the window, and the gauge shows the mean of the last second.
TEST(EnergyCurveWindows, AllowsForTheLagOfAnAveragingGauge) {
  for (const double idle_w : {5.0, 76.0}) {
    for (const double elapsed_s : {0.1, 0.3, 0.5, 0.8, 1.0, 2.0, 10.0}) {
      constexpr double kLoad_w = 700;
      Channel channel;
      channel.kind = ChannelKind::gauge;
      channel.quantity = Quantity::power;
      channel.scale = 1e-3;
      channel.averaging_time_s = 1;
      MeteredWindow window(channel);
      const auto read_at = [&](double time_s) {
        const double watts = idle_w + (kLoad_w - idle_w) * std::min(time_s, 1.0);
        const auto time_ns = static_cast<std::int64_t>(time_s * 1e9);
        window.observe({static_cast<std::uint64_t>(watts * 1000), time_ns, time_ns, ReadCode::ok});
      };
      read_at(0);
      window.begin(0);
      for (double time_s = 0.01; time_s < elapsed_s; time_s += 0.01) read_at(time_s);
      read_at(elapsed_s);
      window.end(static_cast<std::int64_t>(elapsed_s * 1e9));
      const ChannelEnergy energy = window.result();
      EXPECT_NEAR(energy.joules.value(), kLoad_w * elapsed_s, energy.uncertainty_j)
          << idle_w << " W, " << elapsed_s << " s";
    }
  }
}

// Another program took the readings, every 100 ms; the window edges lie between them.
TEST(EnergyCurveWindows, InterpolatesEdgesBetweenRareReadings) {
  for (const ChannelKind kind : {ChannelKind::counter, ChannelKind::gauge}) {
    Channel channel;
    channel.kind = kind;
    channel.quantity = kind == ChannelKind::counter ? Quantity::energy : Quantity::power;
    channel.scale = 1e-6;
    MeteredWindow window(channel);
    constexpr std::int64_t kBegin_ns = 1'030'000'000;
    constexpr std::int64_t kEnd_ns = 1'960'000'000;
    window.begin(kBegin_ns);
    window.end(kEnd_ns);
    for (std::int64_t time_ns = 500'000'000; time_ns <= 2'500'000'000; time_ns += 100'000'000) {
      // 50 W, in microjoules or microwatts.
      const auto raw_value = static_cast<std::uint64_t>(kind == ChannelKind::counter ? time_ns / 20 : 50'000'000);
      window.observe({raw_value, time_ns, time_ns, ReadCode::ok});
    }
    ASSERT_TRUE(window.result().joules);
    EXPECT_NEAR(*window.result().joules, 0.93 * 50, 1e-6) << to_string(kind);
  }
}

}  // namespace
}  // namespace joulemap
