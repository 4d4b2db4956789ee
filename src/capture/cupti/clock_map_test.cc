// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/clock_map.h"

#include <gtest/gtest.h>

namespace joulemap::capture::cupti {
namespace {

constexpr std::int64_t kSecond = kNanosecondsPerSecond;
constexpr std::int64_t kUnix = 1'700'000'000 * kSecond;  // offset of another clock

TEST(ClockMap, MapsTimesOfAnotherClock) {
  ClockMap map(0);
  map.add_clock_pair(kUnix + 10 * kSecond, 10 * kSecond);
  map.add_clock_pair(kUnix + 11 * kSecond, 11 * kSecond);
  EXPECT_EQ(map.to_monotonic_ns(kUnix + 10 * kSecond + 500, 11 * kSecond), 10 * kSecond + 500);
}

TEST(ClockMap, FollowsDriftBetweenTwoSynchronizations) {
  ClockMap map(0);
  map.add_clock_pair(10 * kSecond, 10 * kSecond);
  map.add_clock_pair(11 * kSecond, 11 * kSecond + 200'000);
  EXPECT_EQ(map.segment_count(), 1U);
  EXPECT_EQ(map.to_monotonic_ns(10 * kSecond + kSecond / 2, 12 * kSecond), 10 * kSecond + kSecond / 2 + 100'000);
}

TEST(ClockMap, ExtrapolatesAfterTheLastSynchronization) {
  ClockMap map(0);
  map.add_clock_pair(10 * kSecond, 20 * kSecond);
  EXPECT_EQ(map.to_monotonic_ns(40 * kSecond, 50 * kSecond), 50 * kSecond);
  EXPECT_EQ(map.to_monotonic_ns(40 * kSecond, 48 * kSecond), std::nullopt) << "more than a second after now";
}

TEST(ClockMap, BeginsANewSegmentWhereTheClockJumps) {
  ClockMap map(0);
  map.add_clock_pair(10 * kSecond, 10 * kSecond);
  map.add_clock_pair(11 * kSecond, 11 * kSecond);
  map.add_clock_pair(kUnix + 12 * kSecond, 12 * kSecond);
  EXPECT_EQ(map.segment_count(), 2U);
  EXPECT_EQ(map.to_monotonic_ns(kUnix + 12 * kSecond + 7, 13 * kSecond), 12 * kSecond + 7);
  EXPECT_EQ(map.to_monotonic_ns(kUnix + 11 * kSecond + 7, 13 * kSecond), 11 * kSecond + 7) << "between poll and jump";
  EXPECT_EQ(map.to_monotonic_ns(10 * kSecond + 7, 13 * kSecond), 10 * kSecond + 7) << "of before, told late";
}

TEST(ClockMap, AClockThatIsSetBackStartsANewSegment) {
  ClockMap map(0);
  map.add_clock_pair(100 * kSecond, 10 * kSecond);
  map.add_clock_pair(50 * kSecond, 11 * kSecond);
  EXPECT_EQ(map.segment_count(), 2U);
  EXPECT_EQ(map.to_monotonic_ns(50 * kSecond + 9, 11 * kSecond), 11 * kSecond + 9);
  EXPECT_EQ(map.to_monotonic_ns(100 * kSecond, 11 * kSecond), 10 * kSecond);
}

TEST(ClockMap, RefusesATimeOfAnUnknownClock) {
  ClockMap map(9 * kSecond);
  EXPECT_EQ(map.to_monotonic_ns(10 * kSecond, 10 * kSecond), std::nullopt) << "nothing was seen yet";
  map.add_clock_pair(10 * kSecond, 10 * kSecond);
  EXPECT_EQ(map.to_monotonic_ns(kUnix, 10 * kSecond), std::nullopt);
  EXPECT_EQ(map.to_monotonic_ns(42, 10 * kSecond), std::nullopt);
  EXPECT_EQ(map.to_monotonic_ns(9 * kSecond - 1, 10 * kSecond), std::nullopt) << "before anything was recorded";
  EXPECT_EQ(map.to_monotonic_ns(9 * kSecond, 10 * kSecond), 9 * kSecond);
}

TEST(ClockMap, DropsSegmentsOfHoursAgoAndStaysCorrect) {
  ClockMap map(0);
  const auto last = static_cast<std::int64_t>(3 * kMaxClockPairs);
  for (std::int64_t second = 1; second <= last; ++second)
    map.add_clock_pair(kUnix + second * kSecond, second * kSecond);
  EXPECT_EQ(map.to_monotonic_ns(kUnix + last * kSecond - 5, last * kSecond), last * kSecond - 5);
  EXPECT_EQ(map.to_monotonic_ns(kUnix + kSecond, last * kSecond), std::nullopt);
}

}  // namespace
}  // namespace joulemap::capture::cupti
