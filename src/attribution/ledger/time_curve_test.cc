// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/time_curve.h"

#include <gtest/gtest.h>

namespace joulemap::attribution {
namespace {

constexpr std::int64_t kSecond_ns = 1'000'000'000;

TEST(TimeCurve, ReturnsTheSumBetweenTheTimesItWasAdded) {
  TimeCurve curve({kSecond_ns, 11 * kSecond_ns}, 7);  // cell edges match no interval below
  curve.add(2 * kSecond_ns, 5 * kSecond_ns, 30);
  curve.add(5 * kSecond_ns, 9 * kSecond_ns, 4);
  curve.finish();
  EXPECT_NEAR(curve.total(), 34, 1e-9);
  EXPECT_NEAR(curve.amount_between(kSecond_ns, 11 * kSecond_ns), 34, 1e-9);
  EXPECT_NEAR(curve.amount_between(0, 20 * kSecond_ns), 34, 1e-9);
  EXPECT_NEAR(curve.amount_between(7 * kSecond_ns, 7 * kSecond_ns), 0, 1e-9);
}

TEST(TimeCurve, SpreadsEvenly) {
  TimeCurve curve({0, 10 * kSecond_ns}, 1000);
  curve.add(0, 10 * kSecond_ns, 100);
  curve.finish();
  EXPECT_NEAR(curve.amount_between(kSecond_ns, 2 * kSecond_ns), 10, 1e-9);
  EXPECT_NEAR(curve.mean_rate(3 * kSecond_ns, 7 * kSecond_ns), 10, 1e-9);
}

TEST(TimeCurve, ClipsTimeOutsideItsRange) {
  TimeCurve curve({0, kSecond_ns}, 10);
  curve.add(-kSecond_ns, kSecond_ns, 10);
  curve.add(kSecond_ns / 2, kSecond_ns / 2, 99);  // empty interval
  curve.finish();
  EXPECT_NEAR(curve.total(), 5, 1e-9);
}

TEST(TimeCurve, StaysSmallHoweverLongTheRun) {
  EXPECT_EQ(cell_count_for_span({0, 1}), 1u);
  EXPECT_LE(cell_count_for_span({0, 72 * 3600 * kSecond_ns}), 200'000u);
}

}  // namespace
}  // namespace joulemap::attribution
