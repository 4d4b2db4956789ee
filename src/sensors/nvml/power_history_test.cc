// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/power_history.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/clock.h"

namespace joulemap::sensors::nvml {
namespace {

constexpr std::int64_t kHistoryPeriod_ns = 20 * kNanosecondsPerMillisecond;
constexpr std::int64_t kHistoryRead_ns = 1500 * kNanosecondsPerMillisecond;
constexpr std::int64_t kWallClock_ns = 1'700'000'000 * kNanosecondsPerSecond;  // at time 0 of the monotonic clock

// A driver that stores the last 2.4 s of power with timestamps of a wall clock that is set forward by `clock_step_ns` at
// `clock_step_time_ns`.
struct TimestampingDriver {
  std::int64_t clock_step_time_ns = INT64_MAX;
  std::int64_t clock_step_ns = 0;

  std::int64_t unix_ns(std::int64_t now_ns) const {
    return kWallClock_ns + now_ns + (now_ns >= clock_step_time_ns ? clock_step_ns : 0);
  }
  std::vector<TimedValue> stored_values(std::int64_t now_ns) const {
    std::vector<TimedValue> values;
    for (std::int64_t at_ns = now_ns - 120 * kHistoryPeriod_ns; at_ns <= now_ns; at_ns += kHistoryPeriod_ns) {
      TimedValue value{static_cast<unsigned long long>(unix_ns(at_ns) / 1000), {}};
      value.value.unsigned_int = static_cast<unsigned>(at_ns / kNanosecondsPerMillisecond);  // its time in ms
      values.push_back(value);
    }
    return values;
  }
};

std::vector<Sample> read_history(const TimestampingDriver& driver, std::int64_t until_ns) {
  PowerHistory history(0);
  std::vector<Sample> samples;
  for (std::int64_t now_ns = 10 * kNanosecondsPerSecond; now_ns <= until_ns; now_ns += kHistoryRead_ns) {
    history.clear();
    history.add_values(driver.stored_values(now_ns), now_ns, driver.unix_ns(now_ns));
    samples.insert(samples.end(), history.samples().begin(), history.samples().end());
  }
  return samples;
}

TEST(PowerHistory, ContinuesAfterAWallClockChange) {
  for (const std::int64_t clock_step_s : {-3600, -10, -1, 1, 10, 3600}) {
    SCOPED_TRACE(clock_step_s);
    const TimestampingDriver driver{20 * kNanosecondsPerSecond, clock_step_s * kNanosecondsPerSecond};
    const std::vector<Sample> samples = read_history(driver, 60 * kNanosecondsPerSecond);
    std::int64_t last_ns = 0;
    std::int64_t max_sample_gap_ns = 0;
    for (const Sample& sample : samples) {
      const std::int64_t at_ns = sample.reading.time_ns();
      EXPECT_EQ(at_ns / kNanosecondsPerMillisecond, static_cast<std::int64_t>(sample.reading.raw));
      EXPECT_GT(at_ns, last_ns);
      if (last_ns != 0) max_sample_gap_ns = std::max(max_sample_gap_ns, at_ns - last_ns);
      last_ns = at_ns;
    }
    EXPECT_GT(last_ns, 58 * kNanosecondsPerSecond) << "it does not wait until the clock has caught up";
    EXPECT_LE(max_sample_gap_ns, 5 * kHistoryRead_ns) << "what is lost is what was kept when the clock was set";
  }
}

TEST(PowerHistory, ReturnsEveryValueOnce) {
  const std::vector<Sample> samples = read_history({}, 20 * kNanosecondsPerSecond);
  for (std::size_t i = 1; i < samples.size(); ++i)
    EXPECT_EQ(samples[i].reading.time_ns() - samples[i - 1].reading.time_ns(), kHistoryPeriod_ns) << i;
  EXPECT_GT(samples.size(), 400u);
}

}  // namespace
}  // namespace joulemap::sensors::nvml
