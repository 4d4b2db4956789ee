// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/clock_map.h"

#include <gtest/gtest.h>

namespace joulemap::capture::cupti {
namespace {

constexpr std::int64_t kSecond_ns = kNanosecondsPerSecond;
constexpr std::int64_t kUnixOffset_ns = 1'700'000'000 * kSecond_ns;  // offset of another clock

TEST(ClockMap, MapsTimesOfAnotherClock) {
  ClockMap map(0);
  map.add_clock_pair(kUnixOffset_ns + 10 * kSecond_ns, 10 * kSecond_ns);
  map.add_clock_pair(kUnixOffset_ns + 11 * kSecond_ns, 11 * kSecond_ns);
  EXPECT_EQ(map.to_monotonic_ns(kUnixOffset_ns + 10 * kSecond_ns + 500, 11 * kSecond_ns), 10 * kSecond_ns + 500);
}

TEST(ClockMap, FollowsDriftBetweenTwoSynchronizations) {
  ClockMap map(0);
  map.add_clock_pair(10 * kSecond_ns, 10 * kSecond_ns);
  map.add_clock_pair(11 * kSecond_ns, 11 * kSecond_ns + 200'000);
  EXPECT_EQ(map.segment_count(), 1U);
  EXPECT_EQ(map.to_monotonic_ns(10 * kSecond_ns + kSecond_ns / 2, 12 * kSecond_ns),
            10 * kSecond_ns + kSecond_ns / 2 + 100'000);
}

TEST(ClockMap, ExtrapolatesAfterTheLastSynchronization) {
  ClockMap map(0);
  map.add_clock_pair(10 * kSecond_ns, 20 * kSecond_ns);
  EXPECT_EQ(map.to_monotonic_ns(40 * kSecond_ns, 50 * kSecond_ns), 50 * kSecond_ns);
  EXPECT_EQ(map.to_monotonic_ns(40 * kSecond_ns, 48 * kSecond_ns), std::nullopt) << "more than a second after now";
}

TEST(ClockMap, BeginsANewSegmentWhereTheClockJumps) {
  ClockMap map(0);
  map.add_clock_pair(10 * kSecond_ns, 10 * kSecond_ns);
  map.add_clock_pair(11 * kSecond_ns, 11 * kSecond_ns);
  map.add_clock_pair(kUnixOffset_ns + 12 * kSecond_ns, 12 * kSecond_ns);
  EXPECT_EQ(map.segment_count(), 2U);
  EXPECT_EQ(map.to_monotonic_ns(kUnixOffset_ns + 12 * kSecond_ns + 7, 13 * kSecond_ns), 12 * kSecond_ns + 7);
  EXPECT_EQ(map.to_monotonic_ns(kUnixOffset_ns + 11 * kSecond_ns + 7, 13 * kSecond_ns), 11 * kSecond_ns + 7)
      << "between poll and jump";
  EXPECT_EQ(map.to_monotonic_ns(10 * kSecond_ns + 7, 13 * kSecond_ns), 10 * kSecond_ns + 7) << "of before, told late";
}

TEST(ClockMap, AClockThatIsSetBackStartsANewSegment) {
  ClockMap map(0);
  map.add_clock_pair(100 * kSecond_ns, 10 * kSecond_ns);
  map.add_clock_pair(50 * kSecond_ns, 11 * kSecond_ns);
  EXPECT_EQ(map.segment_count(), 2U);
  EXPECT_EQ(map.to_monotonic_ns(50 * kSecond_ns + 9, 11 * kSecond_ns), 11 * kSecond_ns + 9);
  EXPECT_EQ(map.to_monotonic_ns(100 * kSecond_ns, 11 * kSecond_ns), 10 * kSecond_ns);
}

TEST(ClockMap, RefusesATimeOfAnUnknownClock) {
  ClockMap map(9 * kSecond_ns);
  EXPECT_EQ(map.to_monotonic_ns(10 * kSecond_ns, 10 * kSecond_ns), std::nullopt) << "nothing was seen yet";
  map.add_clock_pair(10 * kSecond_ns, 10 * kSecond_ns);
  EXPECT_EQ(map.to_monotonic_ns(kUnixOffset_ns, 10 * kSecond_ns), std::nullopt);
  EXPECT_EQ(map.to_monotonic_ns(42, 10 * kSecond_ns), std::nullopt);
  EXPECT_EQ(map.to_monotonic_ns(9 * kSecond_ns - 1, 10 * kSecond_ns), std::nullopt) << "before anything was recorded";
  EXPECT_EQ(map.to_monotonic_ns(9 * kSecond_ns, 10 * kSecond_ns), 9 * kSecond_ns);
}

TEST(ClockMap, DropsSegmentsOfHoursAgoAndStaysCorrect) {
  ClockMap map(0);
  const auto last_second = static_cast<std::int64_t>(3 * kMaxClockPairs);
  for (std::int64_t time_s = 1; time_s <= last_second; ++time_s)
    map.add_clock_pair(kUnixOffset_ns + time_s * kSecond_ns, time_s * kSecond_ns);
  EXPECT_EQ(map.to_monotonic_ns(kUnixOffset_ns + last_second * kSecond_ns - 5, last_second * kSecond_ns),
            last_second * kSecond_ns - 5);
  EXPECT_EQ(map.to_monotonic_ns(kUnixOffset_ns + kSecond_ns, last_second * kSecond_ns), std::nullopt);
}

}  // namespace
}  // namespace joulemap::capture::cupti
