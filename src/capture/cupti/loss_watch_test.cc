// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/loss_watch.h"

#include <gtest/gtest.h>

namespace joulemap::capture::cupti {
namespace {

constexpr std::int64_t kSecond = kNanosecondsPerSecond;
constexpr std::uint64_t kRoom = 100;

LossWatch::Seen seen(int second, std::uint64_t launches, std::uint64_t records, bool clock_is_taken = false) {
  return {second * kSecond, launches, records, kRoom, clock_is_taken};
}

TEST(LossWatch, RecordsThatKeepComingAreNoLoss) {
  LossWatch watch;
  for (int second = 0; second < 10; ++second) {
    const auto many = static_cast<std::uint64_t>(second) * 1000;
    EXPECT_FALSE(watch.lost_since(seen(second, many, many)));
  }
}

TEST(LossWatch, AProgramThatLaunchesNothingLosesNothing) {
  LossWatch watch;
  watch.restart(seen(0, 5000, 5000));
  for (int second = 1; second < 100; ++second) EXPECT_FALSE(watch.lost_since(seen(second, 5000, 5000)));
}

TEST(LossWatch, MoreLaunchesThanFitIntoTheBuffersAndTwoSecondsOfSilenceAreALoss) {
  LossWatch watch;
  watch.restart(seen(10, 0, 0));
  EXPECT_FALSE(watch.lost_since(seen(11, 1000, 0)));
  EXPECT_EQ(watch.lost_since(seen(12, 2000, 0)), 10 * kSecond);
}

TEST(LossWatch, FewLaunchesMayLieInABufferThatIsHeldBack) {
  LossWatch watch;
  watch.restart(seen(0, 0, 0));
  for (int second = 1; second < 60; ++second) EXPECT_FALSE(watch.lost_since(seen(second, kRoom, 0)));
}

TEST(LossWatch, SilenceUnderAForeignClockIsALossHoweverFewTheLaunches) {
  LossWatch watch;
  watch.restart(seen(0, 0, 0));
  EXPECT_FALSE(watch.lost_since(seen(1, 1, 0, true)));
  EXPECT_EQ(watch.lost_since(seen(2, 2, 0, true)), 0);
}

TEST(LossWatch, BeginsAnewAfterRecovery) {
  LossWatch watch;
  watch.restart(seen(0, 0, 0));
  EXPECT_TRUE(watch.lost_since(seen(2, 1000, 0)));
  watch.restart(seen(2, 1000, 0));
  EXPECT_FALSE(watch.lost_since(seen(3, 2000, 0)));
  EXPECT_EQ(watch.lost_since(seen(4, 3000, 0)), 2 * kSecond);
}

}  // namespace
}  // namespace joulemap::capture::cupti
