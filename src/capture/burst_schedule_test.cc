// SPDX-License-Identifier: Apache-2.0
#include "capture/burst_schedule.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace joulemap::capture {
namespace {

constexpr std::int64_t kTick_ns = 10 * kNanosecondsPerMillisecond;

std::int64_t count_burst_ticks(std::int64_t from_s, std::int64_t to_s) {
  BurstSchedule schedule;
  std::int64_t count = 0;
  for (std::int64_t run_ns = 0; run_ns < to_s * kNanosecondsPerSecond; run_ns += kTick_ns) {
    if (schedule.begin_or_continue_burst(run_ns) && run_ns >= from_s * kNanosecondsPerSecond) ++count;
  }
  return count;
}

TEST(BurstSchedule, SamplesTheBeginningOfARunInBursts) { EXPECT_EQ(count_burst_ticks(0, 20), 2000); }

TEST(BurstSchedule, BurstsBecomeRareButContinue) {
  EXPECT_GT(count_burst_ticks(20, 60), 1500);
  EXPECT_GT(count_burst_ticks(3600, 7200), 500);
  EXPECT_LT(count_burst_ticks(0, 86400), 20'000);  // of 8.6 million ticks
}

}  // namespace
}  // namespace joulemap::capture
