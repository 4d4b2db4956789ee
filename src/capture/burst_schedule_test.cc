// SPDX-License-Identifier: Apache-2.0
#include "capture/burst_schedule.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace joulemap::capture {
namespace {

constexpr std::int64_t kTick_ns = 10 * kNanosecondsPerMillisecond;

std::int64_t close_ticks(std::int64_t from_s, std::int64_t to_s) {
  BurstSchedule stretches;
  std::int64_t close = 0;
  for (std::int64_t run_ns = 0; run_ns < to_s * kNanosecondsPerSecond; run_ns += kTick_ns) {
    if (stretches.ends_at(run_ns) && run_ns >= from_s * kNanosecondsPerSecond) ++close;
  }
  return close;
}

TEST(BurstSchedule, TheBeginningOfARunIsWatchedClosely) { EXPECT_EQ(close_ticks(0, 20), 2000); }

TEST(BurstSchedule, LaterTheyBecomeRareButDoNotEnd) {
  EXPECT_GT(close_ticks(20, 60), 1500);
  EXPECT_GT(close_ticks(3600, 7200), 500);
  EXPECT_LT(close_ticks(0, 86400), 20'000);  // of 8.6 million ticks
}

}  // namespace
}  // namespace joulemap::capture
