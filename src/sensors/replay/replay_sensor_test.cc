// SPDX-License-Identifier: Apache-2.0
#include "sensors/replay/replay_sensor.h"
#include "base/clock.h"

#include <gtest/gtest.h>

namespace joulemap::sensors {
namespace {

Sample sample(std::int64_t time_ns, std::uint64_t raw_value) {
  Sample channel_sample;
  channel_sample.channel = 0;
  channel_sample.reading = {raw_value, time_ns, time_ns, ReadCode::ok};
  return channel_sample;
}

Reading read_channel_once(ReplaySensor& sensor) {
  Reading reading;
  sensor.read({&reading, 1}, SamplingMode{});
  return reading;
}

TEST(ReplaySensor, CountsOnBetweenTwoSamplesOfACounter) {
  ReplaySensor sensor({Channel{}},
                      {sample(0, 5'000), sample(1000 * kNanosecondsPerSecond, 5'000 + 1000 * kNanosecondsPerSecond)});
  const Reading first_reading = read_channel_once(sensor);
  const Reading second_reading = read_channel_once(sensor);
  EXPECT_EQ(first_reading.raw, 5'000u);
  const std::int64_t elapsed_ns = second_reading.time_ns() - first_reading.time_ns();
  EXPECT_NEAR(static_cast<double>(second_reading.raw - first_reading.raw), static_cast<double>(elapsed_ns), 1)
      << "one unit a nanosecond";
}

TEST(ReplaySensor, KeepsTheLastValueOfAGauge) {
  Channel gauge;
  gauge.kind = ChannelKind::gauge;
  gauge.quantity = Quantity::power;
  ReplaySensor sensor({gauge}, {sample(0, 100), sample(1000 * kNanosecondsPerSecond, 1'000'000'000)});
  read_channel_once(sensor);
  EXPECT_EQ(read_channel_once(sensor).raw, 100u);
}

TEST(ReplaySensor, DoesNotCountTowardsAFaultySample) {
  ReplaySensor spike({Channel{}}, {sample(0, 100), sample(100 * kNanosecondsPerSecond, 1'000'000'000'000),
                                   sample(200 * kNanosecondsPerSecond, 200)});
  ReplaySensor reset({Channel{}}, {sample(0, 100), sample(100 * kNanosecondsPerSecond, 7)});
  for (ReplaySensor* const sensor : {&spike, &reset}) {
    read_channel_once(*sensor);
    EXPECT_EQ(read_channel_once(*sensor).raw, 100u);
  }
}

}  // namespace
}  // namespace joulemap::sensors
