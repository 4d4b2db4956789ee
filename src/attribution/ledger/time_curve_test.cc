// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/time_curve.h"
#include "base/clock.h"

#include <gtest/gtest.h>

namespace joulemap::attribution {
namespace {

TEST(TimeCurve, ReturnsTheSumBetweenTheTimesItWasAdded) {
  TimeCurve curve({kNanosecondsPerSecond, 11 * kNanosecondsPerSecond}, 7);  // cell edges match no interval below
  curve.add(2 * kNanosecondsPerSecond, 5 * kNanosecondsPerSecond, 30);
  curve.add(5 * kNanosecondsPerSecond, 9 * kNanosecondsPerSecond, 4);
  curve.finish();
  EXPECT_NEAR(curve.total(), 34, 1e-9);
  EXPECT_NEAR(curve.amount_between(kNanosecondsPerSecond, 11 * kNanosecondsPerSecond), 34, 1e-9);
  EXPECT_NEAR(curve.amount_between(0, 20 * kNanosecondsPerSecond), 34, 1e-9);
  EXPECT_NEAR(curve.amount_between(7 * kNanosecondsPerSecond, 7 * kNanosecondsPerSecond), 0, 1e-9);
}

TEST(TimeCurve, SpreadsEvenly) {
  TimeCurve curve({0, 10 * kNanosecondsPerSecond}, 1000);
  curve.add(0, 10 * kNanosecondsPerSecond, 100);
  curve.finish();
  EXPECT_NEAR(curve.amount_between(kNanosecondsPerSecond, 2 * kNanosecondsPerSecond), 10, 1e-9);
  EXPECT_NEAR(curve.mean_rate(3 * kNanosecondsPerSecond, 7 * kNanosecondsPerSecond), 10, 1e-9);
}

TEST(TimeCurve, ClipsTimeOutsideItsRange) {
  TimeCurve curve({0, kNanosecondsPerSecond}, 10);
  curve.add(-kNanosecondsPerSecond, kNanosecondsPerSecond, 10);
  curve.add(kNanosecondsPerSecond / 2, kNanosecondsPerSecond / 2, 99);  // empty interval
  curve.finish();
  EXPECT_NEAR(curve.total(), 5, 1e-9);
}

TEST(TimeCurve, StaysSmallHoweverLongTheRun) {
  EXPECT_EQ(cell_count_for_span({0, 1}), 1u);
  EXPECT_LE(cell_count_for_span({0, 72 * 3600 * kNanosecondsPerSecond}), 200'000u);
}

}  // namespace
}  // namespace joulemap::attribution
