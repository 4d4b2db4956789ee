// SPDX-License-Identifier: Apache-2.0
#include "calibration/load_response.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "base/clock.h"
#include "calibration/busy_time.h"
#include "calibration/load_findings.h"

namespace joulemap::calibration {
namespace {

constexpr double kIdle_w = 130;
constexpr double kLoaded_w = 480;

LoadPhases make_wave_phases(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto length_ns = [&] {
    return static_cast<std::int64_t>(20e6 * std::pow(20.0, std::uniform_real_distribution<>()(random)));
  };
  LoadPhases phases;
  std::int64_t now_ns = 7'000'000'000;
  phases.idle_with_context = {now_ns - 2'000'000'000, now_ns};
  phases.square_waves.begin_ns = now_ns;
  while (now_ns < phases.square_waves.begin_ns + 10'000'000'000) {
    phases.load_spans.push_back({now_ns, now_ns + length_ns()});
    now_ns = phases.load_spans.back().end_ns + length_ns();
  }
  phases.square_waves.end_ns = now_ns;
  return phases;
}

// Values of a sensor every `period_s`, from the busy fraction that it averages, with noise.
std::vector<PublishedValue> simulate_values(const LoadPhases& phases, double period_s, double noise_w,
                                            std::uint64_t seed, const std::function<double(std::int64_t)>& busy) {
  std::mt19937_64 random(seed);
  std::normal_distribution<> noise(0, noise_w);
  std::vector<PublishedValue> published_values;
  const auto period_ns = static_cast<std::int64_t>(period_s * 1e9);
  for (std::int64_t time_ns = phases.idle_with_context.begin_ns; time_ns < phases.square_waves.end_ns;
       time_ns += period_ns) {
    published_values.push_back({time_ns, kIdle_w + (kLoaded_w - kIdle_w) * busy(time_ns) + noise(random)});
  }
  return published_values;
}

std::vector<PublishedValue> counter(const LoadPhases& phases, double lag_s, double noise_w, std::uint64_t seed) {
  const BusyTime busy(phases.load_spans);
  const auto lag_ns = static_cast<std::int64_t>(lag_s * 1e9);
  std::vector<PublishedValue> published_values = simulate_values(phases, 0.1, noise_w, seed, [&](std::int64_t time_ns) {
    return busy.busy_fraction(time_ns - lag_ns - 100'000'000, 100e6);
  });
  double joules = 0;
  for (PublishedValue& value : published_values) value.value = joules += value.value * 0.1;
  return published_values;
}

std::vector<PublishedValue> window(const LoadPhases& phases, double period_s, double window_s, double lag_s,
                                   double noise_w, std::uint64_t seed) {
  const BusyTime busy(phases.load_spans);
  return simulate_values(phases, period_s, noise_w, seed, [&](std::int64_t time_ns) {
    return busy.busy_fraction(time_ns - static_cast<std::int64_t>((lag_s + window_s) * 1e9), window_s * 1e9);
  });
}

TEST(LoadResponse, FindsTheLagOfACounter) {
  int covered_lag_count = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const LoadPhases phases = make_wave_phases(seed);
    const double lag_s = 0.001 * static_cast<double>(seed);
    const auto response = find_load_response(ChannelKind::counter, counter(phases, lag_s, 15, seed), phases);
    ASSERT_TRUE(response);
    EXPECT_TRUE(response->is_lag_identified);
    EXPECT_NEAR(response->lag_s, lag_s, 0.0025);
    EXPECT_LT(response->lag_high_s - response->lag_low_s, 0.008);
    if (response->lag_low_s <= lag_s && lag_s <= response->lag_high_s) ++covered_lag_count;
  }
  EXPECT_GE(covered_lag_count, 15);  // of 20, at 90 %
}

TEST(LoadResponse, FindsARunningAverageOfASecond) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const LoadPhases phases = make_wave_phases(seed);
    const auto response = find_load_response(ChannelKind::gauge, window(phases, 0.1, 1.0, 0.01, 2, seed), phases);
    ASSERT_TRUE(response);
    EXPECT_TRUE(response->is_lag_identified);
    EXPECT_EQ(response->averaging, SensorAveraging::moving_average);
    EXPECT_NEAR(response->averaging_time_s, 1, 0.03);
    EXPECT_NEAR(response->lag_s, 0.01, 0.02);
  }
}

// The load lasts for two seconds, as in a calibration; the average of a second reaches the loaded level after half of
// that.
TEST(LoadFindings, ARunningAverageOfASecondHasALoadedLevel) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    LoadPhases phases = make_wave_phases(seed);
    phases.full_load = {phases.square_waves.end_ns, phases.square_waves.end_ns + 2'000'000'000};
    phases.after_load = {phases.full_load.end_ns, phases.full_load.end_ns + 2'500'000'000};
    LoadPhases extended_phases = phases;
    extended_phases.load_spans.push_back(phases.full_load);
    extended_phases.square_waves.end_ns = phases.after_load.end_ns;
    ChannelCalibration finding;
    std::vector<GpuLoadChannel> channels = {
        {.channel = {}, .published_values = window(extended_phases, 0.1, 1.0, 0.06, 0, seed)}};
    channels[0].channel.kind = ChannelKind::gauge;
    channels[0].finding = &finding;
    Diagnostics diagnostics;
    add_load_findings(channels, phases, diagnostics);
    ASSERT_TRUE(finding.loaded_w && finding.active_idle_w);
    EXPECT_NEAR(*finding.loaded_w, kLoaded_w, 0.05 * kLoaded_w);
    EXPECT_NEAR(*finding.active_idle_w, kIdle_w, 0.1 * kIdle_w);
  }
}

TEST(LoadResponse, FindsAnAveragingWindowShorterThanThePeriod) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const LoadPhases phases = make_wave_phases(seed);
    const auto response = find_load_response(ChannelKind::gauge, window(phases, 0.1, 0.025, 0.005, 3, seed), phases);
    ASSERT_TRUE(response);
    EXPECT_TRUE(response->is_lag_identified);
    EXPECT_EQ(response->averaging, SensorAveraging::moving_average);
    EXPECT_NEAR(response->averaging_time_s, 0.025, 0.008);
    EXPECT_NEAR(response->lag_s, 0.005, 0.006);
  }
}

TEST(LoadResponse, FindsAnExponentialTimeConstant) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const LoadPhases phases = make_wave_phases(seed);
    const BusyTime busy(phases.load_spans);
    const BusyTime::ExponentialAverage average(busy, 12e6);
    const auto published_values = simulate_values(
        phases, 0.02, 5, seed, [&](std::int64_t time_ns) { return average.average_at(time_ns - 3'000'000); });
    const auto response = find_load_response(ChannelKind::gauge, published_values, phases);
    ASSERT_TRUE(response);
    EXPECT_TRUE(response->is_lag_identified);
    EXPECT_EQ(response->averaging, SensorAveraging::exponential_average);
    EXPECT_NEAR(response->averaging_time_s, 0.012, 0.0015);
    EXPECT_NEAR(response->lag_s, 0.003, 0.0015);
  }
}

TEST(LoadResponse, ToleratesALateValueAndAWarmingGpu) {
  const LoadPhases phases = make_wave_phases(3);
  std::vector<PublishedValue> published_values = window(phases, 0.02, 0.03, 0.005, 3, 3);
  for (std::size_t i = 0; i < published_values.size(); ++i) {
    published_values[i].value += 30 * static_cast<double>(i) / static_cast<double>(published_values.size());
    if (i % 25 == 0) published_values[i].value = kLoaded_w;
  }
  const auto response = find_load_response(ChannelKind::gauge, published_values, phases);
  ASSERT_TRUE(response);
  EXPECT_NEAR(response->lag_s, 0.005, 0.002);
  EXPECT_NEAR(response->averaging_time_s, 0.03, 0.004);
}

TEST(LoadResponse, ReportsNoLagForAnUnresponsiveSensor) {
  int identified_lag_count = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const LoadPhases phases = make_wave_phases(seed);
    const auto published_values = simulate_values(phases, 0.1, 10, seed, [](std::int64_t) { return 0.5; });
    const auto response = find_load_response(ChannelKind::gauge, published_values, phases);
    ASSERT_TRUE(response);
    if (response->is_lag_identified) ++identified_lag_count;
  }
  EXPECT_LE(identified_lag_count, 2);
}

TEST(LoadResponse, RequiresValues) {
  const LoadPhases phases = make_wave_phases(1);
  EXPECT_FALSE(find_load_response(ChannelKind::counter, {}, phases));
  EXPECT_FALSE(
      find_load_response(ChannelKind::gauge, std::vector<PublishedValue>{{phases.square_waves.begin_ns, 3}}, phases));
}

TEST(LoadResponse, ReportsTheFallTimeOfPower) {
  std::vector<PublishedValue> published_values;
  for (std::int64_t ms = -500; ms <= 3000; ms += 20) {
    published_values.push_back({ms * 1'000'000, ms < 0 ? 400.0 : ms < 700 ? 200.0 : 100.0});
  }
  const LoadSpan fall_span{0, 3'000'000'000};
  EXPECT_NEAR(time_to_fall_s(ChannelKind::gauge, published_values, fall_span, 100, 400).value(), 0.68, 1e-9);
  EXPECT_EQ(time_to_fall_s(ChannelKind::gauge, published_values, fall_span, 200, 2000), 0);
  EXPECT_FALSE(time_to_fall_s(ChannelKind::gauge, published_values, fall_span, 10, 400));
  EXPECT_FALSE(time_to_fall_s(ChannelKind::gauge, {}, fall_span, 100, 400));
  EXPECT_NEAR(mean_published_w(ChannelKind::gauge, published_values, fall_span, 1).value(), 100, 1e-9);
}

}  // namespace
}  // namespace joulemap::calibration
