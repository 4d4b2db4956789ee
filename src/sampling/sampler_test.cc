// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>

#include "base/clock.h"
#include "sampling/sensor_thread.h"

namespace joulemap::sampling {
namespace {

using sensors::SamplingMode;
using sensors::Sensor;

constexpr std::int64_t kLongTimeout_ns = 20 * kNanosecondsPerSecond;

// State shared with a ScriptedSensor, which counts its reads and can block inside one, like a device that hangs.
struct SensorScript {
  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> blocked_reads{0};  // number of reads that blocked
  std::atomic<bool> skips_reads{false};
  std::mutex mutex;
  std::condition_variable changed;
  bool blocked = false;

  void set_blocked(bool value) {
    const std::lock_guard lock(mutex);
    blocked = value;
    changed.notify_all();
  }
};

class ScriptedSensor final : public Sensor {
 public:
  ScriptedSensor(SensorScript& script, std::int64_t period_ns, std::string name)
      : script_(script), period_ns_(period_ns) {
    channels_.resize(1);
    channels_[0].name = channels_[0].sensor = std::move(name);
  }
  std::span<const Channel> channels() const override { return channels_; }
  void read(std::span<Reading> readings, SamplingMode mode) noexcept override {
    std::unique_lock lock(script_.mutex);
    if (script_.blocked) ++script_.blocked_reads;
    script_.changed.wait(lock, [this] { return !script_.blocked; });
    readings[0].before_ns = readings[0].after_ns = monotonic_ns();
    readings[0].raw = ++script_.reads;
    readings[0].code = script_.skips_reads && mode != SamplingMode::immediate ? ReadCode::skipped : ReadCode::ok;
  }
  std::int64_t next_read_ns(std::int64_t last_ns, SamplingMode mode) const noexcept override {
    return last_ns + (mode == SamplingMode::near_edge ? kNanosecondsPerMillisecond : period_ns_);
  }

 private:
  SensorScript& script_;
  std::int64_t period_ns_;
  std::vector<Channel> channels_;
};

template <class... Sensors>
Sampler make_sampler(std::unique_ptr<Sensors>... sensors) {
  std::vector<std::unique_ptr<Sensor>> sensor_list;
  (sensor_list.push_back(std::move(sensors)), ...);
  return Sampler(std::move(sensor_list));
}

std::unique_ptr<Sensor> sensor(SensorScript& script, std::int64_t period_ns, std::string name = "scripted") {
  return std::make_unique<ScriptedSensor>(script, period_ns, std::move(name));
}

std::map<std::uint32_t, std::vector<std::uint64_t>> drain_samples(Sampler& sampler) {
  std::map<std::uint32_t, std::vector<std::uint64_t>> values;
  sampler.drain([&](const Sample& sample) { values[sample.channel].push_back(sample.reading.raw); });
  return values;
}

// Waits for a state of the sampler's threads; fails the test on timeout.
template <class Condition>
void wait_for(Condition condition) {
  const std::int64_t deadline_ns = monotonic_ns() + kLongTimeout_ns;
  while (!condition()) {
    ASSERT_LT(monotonic_ns(), deadline_ns) << "it never happened";
    std::this_thread::yield();
  }
}

TEST(Sampler, DeliversReadingsOfEachSensorInOrderByChannel) {
  SensorScript a;
  SensorScript b;
  Sampler sampler = make_sampler(sensor(a, kNanosecondsPerMillisecond), sensor(b, kNanosecondsPerMillisecond));
  sampler.start();
  wait_for([&] { return a.reads >= 20 && b.reads >= 20; });
  sampler.stop();
  const auto values = drain_samples(sampler);
  ASSERT_EQ(values.size(), 2u);
  for (const auto& [channel, channel_values] : values) {
    for (std::size_t i = 0; i < channel_values.size(); ++i)
      EXPECT_EQ(channel_values[i], i + 1) << "channel " << channel;
  }
}

// Reads once, and delivers more samples than a ring holds while `floods` is set.
class FloodingSensor final : public Sensor {
 public:
  explicit FloodingSensor(const std::atomic<bool>& floods) : is_flooding_(floods), channels_(1), history_(5000) {}
  std::span<const Channel> channels() const override { return channels_; }
  void read(std::span<Reading> readings, SamplingMode /*mode*/) noexcept override {
    readings[0].code = ReadCode::skipped;
  }
  std::span<const Sample> history() const noexcept override {
    return std::span(history_).first(is_flooding_ ? history_.size() : 1);
  }
  std::int64_t next_read_ns(std::int64_t last_ns, SamplingMode /*mode*/) const noexcept override {
    return last_ns + 3600 * kNanosecondsPerSecond;
  }

 private:
  const std::atomic<bool>& is_flooding_;
  std::vector<Channel> channels_;
  std::vector<Sample> history_;
};

TEST(Sampler, SamplesLostInOneRunAreNotCountedInTheNext) {
  std::atomic<bool> floods{true};
  Sampler sampler = make_sampler(std::make_unique<FloodingSensor>(floods));
  sampler.start();
  ASSERT_TRUE(sampler.read_all_sensors(kLongTimeout_ns));
  sampler.stop();
  drain_samples(sampler);
  EXPECT_GT(sampler.costs().at(0).lost_samples, 0u);
  floods = false;
  sampler.start();
  ASSERT_TRUE(sampler.read_all_sensors(kLongTimeout_ns));
  sampler.stop();
  EXPECT_EQ(sampler.costs().at(0).lost_samples, 0u);
}

TEST(Sampler, ASensorThatHangsDelaysNoOther) {
  SensorScript hanging_script;
  SensorScript quick_script;
  hanging_script.set_blocked(true);
  Sampler sampler = make_sampler(sensor(hanging_script, kNanosecondsPerMillisecond),
                                 sensor(quick_script, kNanosecondsPerMillisecond));
  sampler.start();
  wait_for([&] { return quick_script.reads >= 50; });
  EXPECT_EQ(hanging_script.reads, 0u);
  EXPECT_FALSE(sampler.read_all_sensors(kNanosecondsPerMillisecond)) << "one has not answered";
  hanging_script.set_blocked(false);
  EXPECT_TRUE(sampler.read_all_sensors(kLongTimeout_ns));
}

TEST(Sampler, ReadsImmediatelyOnRequest) {
  SensorScript script;
  Sampler sampler = make_sampler(sensor(script, 3600 * kNanosecondsPerSecond));
  sampler.start();
  wait_for([&] { return script.reads == 1; });
  ASSERT_TRUE(sampler.read_all_sensors(kLongTimeout_ns));
  EXPECT_EQ(drain_samples(sampler)[0].back(), 2u);
}

TEST(Sampler, AppliesAModeChangeWhileItSleeps) {
  SensorScript script;
  Sampler sampler = make_sampler(sensor(script, 3600 * kNanosecondsPerSecond));
  sampler.start();
  wait_for([&] { return script.reads == 1; });
  sampler.set_mode(SamplingMode::near_edge);
  wait_for([&] { return script.reads >= 10; });
}

TEST(SensorThread, TakesARequestedReadingBeforeItStopsHoweverLateItIs) {
  SensorScript script;
  script.set_blocked(true);
  SensorThread thread(sensor(script, 3600 * kNanosecondsPerSecond), 0);
  thread.start();
  wait_for([&] { return script.blocked_reads == 1; });  // in its first reading
  thread.request_read();
  thread.request_stop();
  script.set_blocked(false);
  ASSERT_TRUE(thread.wait_for_stop(monotonic_ns() + kLongTimeout_ns));
  EXPECT_EQ(script.reads, 2u);
  EXPECT_TRUE(thread.is_read_done());
}

TEST(Sampler, StopsWhileItSleeps) {
  SensorScript script;
  Sampler sampler = make_sampler(sensor(script, 3600 * kNanosecondsPerSecond));
  sampler.start();
  sampler.stop();
  EXPECT_FALSE(sampler.is_running());
}

TEST(Sampler, AbandonsASensorThatNeverReturns) {
  auto& script = *new SensorScript;  // its thread outlives the test and hangs until the program exits
  SensorScript quick_script;
  {
    Sampler sampler =
        make_sampler(sensor(script, kNanosecondsPerMillisecond), sensor(quick_script, kNanosecondsPerMillisecond));
    sampler.start();
    wait_for([&] { return script.reads >= 1; });
    script.set_blocked(true);
    wait_for([&] { return script.blocked_reads == 1; });
    sampler.stop();
    EXPECT_EQ(sampler.hanging_thread_count(), 1u);
    EXPECT_EQ(sampler.costs().size(), 1u);
    EXPECT_GE(drain_samples(sampler)[0].size(), 1u) << "what it gave before is kept";
    sampler.start();
    EXPECT_FALSE(sampler.read_all_sensors(kLongTimeout_ns)) << "it is not asked again, and not waited for";
  }
}

TEST(Sampler, StoresNoReadingThatWasNotDue) {
  SensorScript script;
  script.skips_reads = true;
  Sampler sampler = make_sampler(sensor(script, kNanosecondsPerMillisecond));
  sampler.start();
  wait_for([&] { return script.reads >= 5; });
  ASSERT_TRUE(sampler.read_all_sensors(kLongTimeout_ns));
  sampler.stop();
  EXPECT_EQ(drain_samples(sampler)[0].size(), 1u);
}

TEST(Sampler, CountsReadsThatWereDueWhileOneHung) {
  SensorScript script;
  Sampler sampler = make_sampler(sensor(script, kNanosecondsPerMillisecond));
  sampler.start();
  wait_for([&] { return script.reads >= 1; });
  script.set_blocked(true);
  const std::int64_t until_ns = monotonic_ns() + 20 * kNanosecondsPerMillisecond;
  wait_for([&] { return monotonic_ns() > until_ns; });
  script.set_blocked(false);
  const std::uint64_t previous_read_count = script.reads;
  wait_for([&] { return script.reads > previous_read_count + 2; });
  sampler.stop();
  const SamplerCost cost = sampler.costs().front();
  EXPECT_GE(cost.missed_ticks, 10u);
  EXPECT_EQ(cost.reads, script.reads);
  EXPECT_GT(cost.cpu_ns, 0);
  EXPECT_GE(cost.lateness.longest_ns(), 0);
}

TEST(Sampler, CountsSamplesThatWereNotFetchedInTime) {
  SensorScript script;
  Sampler sampler = make_sampler(sensor(script, kNanosecondsPerMicrosecond));
  sampler.start();
  wait_for([&] { return script.reads > 3000; });
  sampler.stop();
  const std::uint64_t kept_sample_count = drain_samples(sampler)[0].size();
  EXPECT_EQ(sampler.costs().front().lost_samples, script.reads - kept_sample_count);
  EXPECT_GT(sampler.costs().front().lost_samples, 0u);
}

TEST(Sampler, ASamplerCanBeStartedAgain) {
  SensorScript script;
  Sampler sampler = make_sampler(sensor(script, kNanosecondsPerMillisecond));
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t previous_read_count = script.reads;
    sampler.start();
    wait_for([&] { return script.reads > previous_read_count; });
    sampler.stop();
  }
}

TEST(DelayHistogram, ReturnsUpperBoundsOfPercentiles) {
  DelayHistogram delays;
  for (int i = 0; i < 99; ++i) delays.add(3'000);
  delays.add(5'000'000);
  EXPECT_EQ(delays.percentile_ns(0.5), 4'000);
  EXPECT_EQ(delays.percentile_ns(0.99), 4'000);
  EXPECT_EQ(delays.percentile_ns(1), 5'000'000);
  EXPECT_EQ(DelayHistogram().percentile_ns(0.5), 0);
}

}  // namespace
}  // namespace joulemap::sampling
