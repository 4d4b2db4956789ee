// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/record_loss_detector.h"
#include "base/clock.h"

#include <gtest/gtest.h>

namespace joulemap::capture::cupti {
namespace {

constexpr std::uint64_t kRecordCapacity = 100;

RecordLossDetector::Snapshot make_snapshot(int time_s, std::uint64_t launches, std::uint64_t records,
                                           bool is_clock_replaced = false) {
  return {time_s * kNanosecondsPerSecond, launches, records, kRecordCapacity, is_clock_replaced};
}

TEST(RecordLossDetector, ContinuousRecordsAreNoLoss) {
  RecordLossDetector detector;
  for (int time_s = 0; time_s < 10; ++time_s) {
    const auto record_count = static_cast<std::uint64_t>(time_s) * 1000;
    EXPECT_FALSE(detector.find_loss_begin_ns(make_snapshot(time_s, record_count, record_count)));
  }
}

TEST(RecordLossDetector, WithoutLaunchesThereIsNoLoss) {
  RecordLossDetector detector;
  detector.reset(make_snapshot(0, 5000, 5000));
  for (int time_s = 1; time_s < 100; ++time_s)
    EXPECT_FALSE(detector.find_loss_begin_ns(make_snapshot(time_s, 5000, 5000)));
}

TEST(RecordLossDetector, MoreLaunchesThanBuffersHoldAndTwoSecondsOfSilenceAreALoss) {
  RecordLossDetector detector;
  detector.reset(make_snapshot(10, 0, 0));
  EXPECT_FALSE(detector.find_loss_begin_ns(make_snapshot(11, 1000, 0)));
  EXPECT_EQ(detector.find_loss_begin_ns(make_snapshot(12, 2000, 0)), 10 * kNanosecondsPerSecond);
}

TEST(RecordLossDetector, FewLaunchesMayBeInAnUndeliveredBuffer) {
  RecordLossDetector detector;
  detector.reset(make_snapshot(0, 0, 0));
  for (int time_s = 1; time_s < 60; ++time_s)
    EXPECT_FALSE(detector.find_loss_begin_ns(make_snapshot(time_s, kRecordCapacity, 0)));
}

TEST(RecordLossDetector, SilenceUnderAForeignClockIsALossForAnyLaunchCount) {
  RecordLossDetector detector;
  detector.reset(make_snapshot(0, 0, 0));
  EXPECT_FALSE(detector.find_loss_begin_ns(make_snapshot(1, 1, 0, true)));
  EXPECT_EQ(detector.find_loss_begin_ns(make_snapshot(2, 2, 0, true)), 0);
}

TEST(RecordLossDetector, RestartsAfterRecovery) {
  RecordLossDetector detector;
  detector.reset(make_snapshot(0, 0, 0));
  EXPECT_TRUE(detector.find_loss_begin_ns(make_snapshot(2, 1000, 0)));
  detector.reset(make_snapshot(2, 1000, 0));
  EXPECT_FALSE(detector.find_loss_begin_ns(make_snapshot(3, 2000, 0)));
  EXPECT_EQ(detector.find_loss_begin_ns(make_snapshot(4, 3000, 0)), 2 * kNanosecondsPerSecond);
}

}  // namespace
}  // namespace joulemap::capture::cupti
