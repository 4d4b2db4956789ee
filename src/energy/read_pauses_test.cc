// SPDX-License-Identifier: Apache-2.0
#include "energy/read_pauses.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/clock.h"

namespace joulemap {
namespace {

Channel make_channel_with_pauses(ChannelKind kind, double refresh_s) {
  Channel channel;
  channel.kind = kind;
  channel.quantity = kind == ChannelKind::counter ? Quantity::energy : Quantity::power;
  channel.refresh_s = refresh_s;
  return channel;
}

// Pauses of a channel that is read after each of these intervals.
std::vector<std::int64_t> pauses_ms(const Channel& channel, const std::vector<std::int64_t>& intervals_ms) {
  ReadPauses pauses(channel);
  std::int64_t now_ns = 0;
  pauses.add_reading(now_ns);
  for (const std::int64_t interval_ms : intervals_ms)
    pauses.add_reading(now_ns += interval_ms * kNanosecondsPerMillisecond);
  std::vector<std::int64_t> found_ms;
  pauses.for_each_pause(
      [&](const TimeSpan& pause) { found_ms.push_back((pause.end_ns - pause.begin_ns) / kNanosecondsPerMillisecond); });
  return found_ms;
}

using PauseLengths = std::vector<std::int64_t>;

TEST(ReadPauses, PausesAreIntervalsMuchLongerThanThoseAroundThem) {
  const Channel gauge = make_channel_with_pauses(ChannelKind::gauge, 0.02);
  EXPECT_EQ(pauses_ms(gauge, {20, 20, 20, 20, 3000, 20, 20, 20, 20}), PauseLengths{3000});
  EXPECT_EQ(pauses_ms(gauge, {20, 20, 3000, 20, 25, 20, 20, 20, 4000, 20}), (PauseLengths{3000, 4000}));
  EXPECT_EQ(pauses_ms(gauge, {20, 20, 20, 90, 20, 20, 20}), PauseLengths{}) << "a few periods late is no pause";
  EXPECT_EQ(pauses_ms(gauge, {20, 3000}), PauseLengths{3000}) << "the latest reading counts, too";
  EXPECT_EQ(pauses_ms(gauge, {3000, 20, 20}), PauseLengths{3000});
  EXPECT_EQ(pauses_ms(gauge, {3000}), PauseLengths{}) << "two readings show no period";
}

TEST(ReadPauses, AcceptsAnyPeriodAndItsChanges) {
  const Channel gauge = make_channel_with_pauses(ChannelKind::gauge, 0.02);
  EXPECT_EQ(pauses_ms(gauge, {1, 1, 1, 1, 1000, 1000, 1000, 1000, 1, 1, 1}), PauseLengths{});
  EXPECT_EQ(pauses_ms(gauge, {1000, 1000, 1000, 9000, 1000, 1000}), PauseLengths{9000});
}

TEST(ReadPauses, PlannedGapsOfAnExpensiveCounterAreNoPauses) {
  EXPECT_EQ(pauses_ms(make_channel_with_pauses(ChannelKind::counter, 0.1), {5, 5, 5, 2500, 5, 5, 5}), PauseLengths{});
  EXPECT_EQ(pauses_ms(make_channel_with_pauses(ChannelKind::counter, 0.1), {2500, 2500, 60'000, 2500}),
            PauseLengths{60'000});
  EXPECT_EQ(pauses_ms(make_channel_with_pauses(ChannelKind::counter, 0.001), {50, 50, 50, 2500, 50, 50}),
            PauseLengths{2500});
}

}  // namespace
}  // namespace joulemap
