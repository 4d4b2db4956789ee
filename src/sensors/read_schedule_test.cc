// SPDX-License-Identifier: Apache-2.0
#include "sensors/read_schedule.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace joulemap::sensors {
namespace {

Channel rapl_channel(std::uint64_t range_uj) {
  Channel channel;
  channel.scale = 1e-6;
  channel.wrap_range = range_uj;
  return channel;
}

std::int64_t relaxed_channel_period_ns(const Channel& channel) {
  return relaxed_read_period_ns(std::span(&channel, 1));
}

TEST(ReadSchedule, ReadsOftenEnoughToDetectEveryWrap) {
  EXPECT_EQ(relaxed_channel_period_ns(rapl_channel(262'143'328'850)), 50 * kNanosecondsPerMillisecond);
  EXPECT_EQ(relaxed_channel_period_ns(rapl_channel(10'000'000)), 5 * kNanosecondsPerMillisecond);
  EXPECT_EQ(relaxed_channel_period_ns(rapl_channel(1000)), kNanosecondsPerMillisecond);
}

TEST(ReadSchedule, ReadsAGaugeMoreOftenThanACounterAndAnEstimateRarely) {
  Channel gauge;
  gauge.kind = ChannelKind::gauge;
  EXPECT_EQ(relaxed_channel_period_ns(gauge), 20 * kNanosecondsPerMillisecond);
  Channel estimate;
  estimate.provenance = Provenance::estimated;
  EXPECT_EQ(relaxed_channel_period_ns(estimate), kNanosecondsPerSecond);
}

TEST(ReadSchedule, ReadsAFastCounterTenTimesPerUpdate) {
  const Channel fast_channel = rapl_channel(262'143'328'850);
  EXPECT_EQ(near_edge_read_period_ns(std::span(&fast_channel, 1)), 100 * kNanosecondsPerMicrosecond);
  Channel slow_channel;
  slow_channel.refresh_s = 0.1;
  EXPECT_EQ(near_edge_read_period_ns(std::span(&slow_channel, 1)), kNanosecondsPerMillisecond);
}

}  // namespace
}  // namespace joulemap::sensors
