// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/clock_map.h"
#include "base/clock.h"

#include <gtest/gtest.h>

namespace joulemap::capture::cupti {
namespace {

constexpr std::int64_t kUnixOffset_ns = 1'700'000'000 * kNanosecondsPerSecond;  // offset of another clock

TEST(ClockMap, MapsTimesOfAnotherClock) {
  ClockMap map(0);
  map.add_clock_pair(kUnixOffset_ns + 10 * kNanosecondsPerSecond, 10 * kNanosecondsPerSecond);
  map.add_clock_pair(kUnixOffset_ns + 11 * kNanosecondsPerSecond, 11 * kNanosecondsPerSecond);
  EXPECT_EQ(map.to_monotonic_ns(kUnixOffset_ns + 10 * kNanosecondsPerSecond + 500, 11 * kNanosecondsPerSecond),
            10 * kNanosecondsPerSecond + 500);
}

TEST(ClockMap, FollowsDriftBetweenTwoSynchronizations) {
  ClockMap map(0);
  map.add_clock_pair(10 * kNanosecondsPerSecond, 10 * kNanosecondsPerSecond);
  map.add_clock_pair(11 * kNanosecondsPerSecond, 11 * kNanosecondsPerSecond + 200'000);
  EXPECT_EQ(map.segment_count(), 1U);
  EXPECT_EQ(map.to_monotonic_ns(10 * kNanosecondsPerSecond + kNanosecondsPerSecond / 2, 12 * kNanosecondsPerSecond),
            10 * kNanosecondsPerSecond + kNanosecondsPerSecond / 2 + 100'000);
}

TEST(ClockMap, ExtrapolatesAfterTheLastSynchronization) {
  ClockMap map(0);
  map.add_clock_pair(10 * kNanosecondsPerSecond, 20 * kNanosecondsPerSecond);
  EXPECT_EQ(map.to_monotonic_ns(40 * kNanosecondsPerSecond, 50 * kNanosecondsPerSecond), 50 * kNanosecondsPerSecond);
  EXPECT_EQ(map.to_monotonic_ns(40 * kNanosecondsPerSecond, 48 * kNanosecondsPerSecond), std::nullopt)
      << "more than a second after now";
}

TEST(ClockMap, BeginsANewSegmentWhereTheClockJumps) {
  ClockMap map(0);
  map.add_clock_pair(10 * kNanosecondsPerSecond, 10 * kNanosecondsPerSecond);
  map.add_clock_pair(11 * kNanosecondsPerSecond, 11 * kNanosecondsPerSecond);
  map.add_clock_pair(kUnixOffset_ns + 12 * kNanosecondsPerSecond, 12 * kNanosecondsPerSecond);
  EXPECT_EQ(map.segment_count(), 2U);
  EXPECT_EQ(map.to_monotonic_ns(kUnixOffset_ns + 12 * kNanosecondsPerSecond + 7, 13 * kNanosecondsPerSecond),
            12 * kNanosecondsPerSecond + 7);
  EXPECT_EQ(map.to_monotonic_ns(kUnixOffset_ns + 11 * kNanosecondsPerSecond + 7, 13 * kNanosecondsPerSecond),
            11 * kNanosecondsPerSecond + 7)
      << "between poll and jump";
  EXPECT_EQ(map.to_monotonic_ns(10 * kNanosecondsPerSecond + 7, 13 * kNanosecondsPerSecond),
            10 * kNanosecondsPerSecond + 7)
      << "a time before the first jump";
}

TEST(ClockMap, AClockThatIsSetBackStartsANewSegment) {
  ClockMap map(0);
  map.add_clock_pair(100 * kNanosecondsPerSecond, 10 * kNanosecondsPerSecond);
  map.add_clock_pair(50 * kNanosecondsPerSecond, 11 * kNanosecondsPerSecond);
  EXPECT_EQ(map.segment_count(), 2U);
  EXPECT_EQ(map.to_monotonic_ns(50 * kNanosecondsPerSecond + 9, 11 * kNanosecondsPerSecond),
            11 * kNanosecondsPerSecond + 9);
  EXPECT_EQ(map.to_monotonic_ns(100 * kNanosecondsPerSecond, 11 * kNanosecondsPerSecond), 10 * kNanosecondsPerSecond);
}

TEST(ClockMap, RefusesATimeOfAnUnknownClock) {
  ClockMap map(9 * kNanosecondsPerSecond);
  EXPECT_EQ(map.to_monotonic_ns(10 * kNanosecondsPerSecond, 10 * kNanosecondsPerSecond), std::nullopt)
      << "nothing was seen yet";
  map.add_clock_pair(10 * kNanosecondsPerSecond, 10 * kNanosecondsPerSecond);
  EXPECT_EQ(map.to_monotonic_ns(kUnixOffset_ns, 10 * kNanosecondsPerSecond), std::nullopt);
  EXPECT_EQ(map.to_monotonic_ns(42, 10 * kNanosecondsPerSecond), std::nullopt);
  EXPECT_EQ(map.to_monotonic_ns(9 * kNanosecondsPerSecond - 1, 10 * kNanosecondsPerSecond), std::nullopt)
      << "before anything was recorded";
  EXPECT_EQ(map.to_monotonic_ns(9 * kNanosecondsPerSecond, 10 * kNanosecondsPerSecond), 9 * kNanosecondsPerSecond);
}

TEST(ClockMap, DropsSegmentsOfHoursAgoAndStaysCorrect) {
  ClockMap map(0);
  const auto last_second = static_cast<std::int64_t>(3 * kMaxClockPairs);
  for (std::int64_t time_s = 1; time_s <= last_second; ++time_s)
    map.add_clock_pair(kUnixOffset_ns + time_s * kNanosecondsPerSecond, time_s * kNanosecondsPerSecond);
  EXPECT_EQ(map.to_monotonic_ns(kUnixOffset_ns + last_second * kNanosecondsPerSecond - 5,
                                last_second * kNanosecondsPerSecond),
            last_second * kNanosecondsPerSecond - 5);
  EXPECT_EQ(map.to_monotonic_ns(kUnixOffset_ns + kNanosecondsPerSecond, last_second * kNanosecondsPerSecond),
            std::nullopt);
}

}  // namespace
}  // namespace joulemap::capture::cupti
