// SPDX-License-Identifier: Apache-2.0
#include "sampling/window_engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "support/sysroots.h"

namespace joulemap::sampling {
namespace {

// A package with a constant power of 100 W whose counter updates every millisecond: the energy of a window follows from
// its two edges alone, however busy this machine is.
class SteadySensor final : public sensors::Sensor {
 public:
  SteadySensor(std::atomic<ReadCode>& code, std::atomic<std::uint64_t>& read_count)
      : code_(code), reads_(read_count), channels_(1) {
    channels_[0].name = channels_[0].domain = "package-0";
    channels_[0].domain_class = DomainClass::cpu;
    channels_[0].scale = 1e-6;
  }
  std::span<const Channel> channels() const override { return channels_; }
  void read(std::span<Reading> readings, sensors::SamplingMode /*mode*/) noexcept override {
    const std::int64_t now_ns = monotonic_ns();
    const std::int64_t updated_ns = now_ns / kNanosecondsPerMillisecond * kNanosecondsPerMillisecond;
    readings[0] = {static_cast<std::uint64_t>(updated_ns / 10), now_ns, now_ns, code_};  // 100 W: 0.1 uJ per ns
    ++reads_;
  }

 private:
  std::atomic<ReadCode>& code_;
  std::atomic<std::uint64_t>& reads_;
  std::vector<Channel> channels_;
};

constexpr double kPower_w = 100;

struct EngineFixture {
  std::atomic<ReadCode> code{ReadCode::ok};
  std::atomic<std::uint64_t> reads{0};
  WindowTable table{1};
  std::unique_ptr<WindowEngine> engine;

  EngineFixture() {
    OpenSensors opened_sensors;
    opened_sensors.sensors.push_back(std::make_unique<SteadySensor>(code, reads));
    engine = WindowEngine::start(table, std::move(opened_sensors));
    while (!has_update_period()) std::this_thread::yield();
  }
  // True once the update period is known: a window shorter than the period then has an energy.
  bool has_update_period() {
    const WindowId window = table.begin();
    table.end(window);
    const bool has_energy = wait_for(window).energy.rows.at(0).joules.has_value();
    table.release(window);
    return has_energy;
  }
  WindowResult wait_for(WindowId window) {
    Result<WindowResult> result = engine->result(window, WaitPolicy::wait);
    EXPECT_TRUE(result) << result.error().message;
    return std::move(*result);
  }
};

// Waits for this many further reads, however long the sampler's thread takes.
void wait_for_reads(const EngineFixture& fixture, std::uint64_t count) {
  const std::uint64_t target_read_count = fixture.reads + count;
  while (fixture.reads < target_read_count) std::this_thread::yield();
}

void busy_wait_for(std::int64_t duration_ns) {
  const std::int64_t end_ns = monotonic_ns() + duration_ns;
  while (monotonic_ns() < end_ns) {
  }
}

void expect_true_energy(const WindowResult& result) {
  ASSERT_EQ(result.energy.rows.size(), 1u);
  const DomainEnergy& row = result.energy.rows[0];
  ASSERT_TRUE(row.joules) << row.reason;
  EXPECT_GT(*row.joules, 0.0);
  EXPECT_LE(std::abs(*row.joules - kPower_w * result.elapsed_s()), *row.uncertainty_j);
}

TEST(WindowEngine, MeasuresTheEnergyOfAWindow) {
  EngineFixture fixture;
  const WindowId window = fixture.table.begin();
  busy_wait_for(50 * kNanosecondsPerMillisecond);
  fixture.table.end(window);
  const WindowResult result = fixture.wait_for(window);
  expect_true_energy(result);
  EXPECT_TRUE(result.is_settled);
  EXPECT_DOUBLE_EQ(*joules_of(result.energy.totals.measured), *result.energy.rows[0].joules);
}

TEST(WindowEngine, AWindowShorterThanARefreshIsNotZero) {
  EngineFixture fixture;
  for (int i = 0; i < 20; ++i) {
    const WindowId window = fixture.table.begin();
    busy_wait_for(200 * kNanosecondsPerMicrosecond);
    fixture.table.end(window);
    expect_true_energy(fixture.wait_for(window));
  }
}

TEST(WindowEngine, MeasuresOverlappingWindowsOfManyThreads) {
  EngineFixture fixture;
  std::vector<WindowId> windows;
  windows.reserve(100);
  for (int i = 0; i < 100; ++i) windows.push_back(fixture.table.begin());
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; i < 100; i += 4) {
        busy_wait_for(kNanosecondsPerMillisecond / 2);
        fixture.table.end(windows[static_cast<std::size_t>(i)]);
        expect_true_energy(fixture.wait_for(windows[static_cast<std::size_t>(i)]));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(WindowEngine, TheEnergyOfAnInnerWindowIsPartOfTheOuter) {
  EngineFixture fixture;
  const WindowId outer_window = fixture.table.begin();
  const WindowId inner_window = fixture.table.begin();
  busy_wait_for(3 * kNanosecondsPerMillisecond);
  fixture.table.end(inner_window);
  fixture.table.end(outer_window);
  const double inner_j = *joules_of(fixture.wait_for(inner_window).energy.totals.measured);
  EXPECT_LE(inner_j, *joules_of(fixture.wait_for(outer_window).energy.totals.measured) + 1e-9);
}

TEST(WindowEngine, PeeksIntoAnOpenWindow) {
  EngineFixture fixture;
  const WindowId window = fixture.table.begin();
  busy_wait_for(2 * kNanosecondsPerMillisecond);
  wait_for_reads(fixture, 3);  // the counter has updated since the begin and was read
  const Result<WindowResult> result = fixture.engine->result(window, WaitPolicy::none);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->is_settled);
  expect_true_energy(*result);
  EXPECT_FALSE(fixture.engine->result(window, WaitPolicy::wait));  // the window has not ended
}

TEST(WindowEngine, AResultDoesNotDependOnTheTimeOfTheQuery) {
  EngineFixture fixture;
  const WindowId window = fixture.table.begin();
  busy_wait_for(5 * kNanosecondsPerMillisecond);
  fixture.table.end(window);
  const double first_energy_j = *joules_of(fixture.wait_for(window).energy.totals.measured);
  fixture.engine->stop();
  EXPECT_NEAR(first_energy_j, *joules_of(fixture.wait_for(window).energy.totals.measured), 0.02);
}

TEST(WindowEngine, AReleasedWindowIsNotAlive) {
  EngineFixture fixture;
  const WindowId window = fixture.table.begin();
  fixture.table.end(window);
  fixture.wait_for(window);
  fixture.table.release(window);
  const Result<WindowResult> result = fixture.engine->result(window, WaitPolicy::none);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::not_found);
}

TEST(WindowEngine, ReportsEnergyUntilASensorFailed) {
  EngineFixture fixture;
  const WindowId window = fixture.table.begin();
  busy_wait_for(2 * kNanosecondsPerMillisecond);
  wait_for_reads(fixture, 3);
  fixture.code = ReadCode::vanished;
  wait_for_reads(fixture, 3);
  busy_wait_for(20 * kNanosecondsPerMillisecond);
  fixture.table.end(window);
  const WindowResult result = fixture.wait_for(window);
  ASSERT_TRUE(result.energy.rows[0].joules);
  EXPECT_LT(*result.energy.rows[0].joules, kPower_w * result.elapsed_s());
  EXPECT_TRUE(result.energy.diagnostics.contains("sensor_vanished"));
}

TEST(WindowEngine, WithoutSensorsAWindowHasItsTimeAndNoEnergy) {
  WindowTable table(1);
  const std::unique_ptr<WindowEngine> engine = WindowEngine::start(table, OpenSensors{});
  const WindowId window = table.begin();
  busy_wait_for(kNanosecondsPerMillisecond);
  table.end(window);
  const Result<WindowResult> result = engine->result(window, WaitPolicy::wait);
  ASSERT_TRUE(result);
  EXPECT_GE(result->elapsed_s(), 0.001);
  EXPECT_TRUE(result->energy.rows.empty());
  EXPECT_FALSE(joules_of(result->energy.totals.measured));
}

TEST(WindowEngine, AFrozenCounterGivesAReasonAndNotZero) {
  WindowTable table(1);
  auto engine =
      WindowEngine::start(table, {.root = {sysroot("frozen-counter")}, .sensors = "powercap", .period_ns = {}});
  ASSERT_TRUE(engine) << engine.error().message;
  const WindowId window = table.begin();
  busy_wait_for(kNanosecondsPerMillisecond);
  table.end(window);
  const Result<WindowResult> result = (*engine)->result(window, WaitPolicy::wait);
  ASSERT_TRUE(result);
  ASSERT_FALSE(result->energy.rows.empty());
  for (const DomainEnergy& row : result->energy.rows) {
    EXPECT_FALSE(row.joules);
    EXPECT_FALSE(row.reason.empty());
  }
}

TEST(WindowEngine, AnUnknownSensorIsAnError) {
  WindowTable table(1);
  EXPECT_FALSE(WindowEngine::start(table, {.root = {}, .sensors = "none-such", .period_ns = {}}));
}

}  // namespace
}  // namespace joulemap::sampling
