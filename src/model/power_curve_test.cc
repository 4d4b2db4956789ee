// SPDX-License-Identifier: Apache-2.0
#include "model/power_curve.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace joulemap {
namespace {

constexpr std::int64_t kSecond = kNanosecondsPerSecond;

void expect_watts(const PowerCurve& curve, const std::vector<std::optional<double>>& expected) {
  const std::vector<std::optional<double>> watts = curve.watts();
  ASSERT_EQ(watts.size(), expected.size());
  for (std::size_t i = 0; i < watts.size(); ++i) {
    ASSERT_EQ(watts[i].has_value(), expected[i].has_value()) << "slice " << i;
    if (watts[i]) {
      EXPECT_NEAR(*watts[i], *expected[i], 1e-9) << "slice " << i;
    }
  }
}

TEST(PowerCurve, SpreadsEnergyOverTheSlicesItFallsInto) {
  PowerCurve curve(0, 4 * kSecond, 4);
  curve.add(0, 2 * kSecond, 20);
  curve.add(2 * kSecond, 4 * kSecond, 60);
  expect_watts(curve, {10, 10, 30, 30});
  EXPECT_DOUBLE_EQ(curve.slice_s(), 1);
}

TEST(PowerCurve, CutsOffWhatLiesOutside) {
  PowerCurve curve(10 * kSecond, 12 * kSecond, 2);
  curve.add(9 * kSecond, 13 * kSecond, 40);
  curve.add(20 * kSecond, 21 * kSecond, 1000);
  expect_watts(curve, {10, 10});
}

TEST(PowerCurve, KnowsNothingWhereNothingWasTold) {
  PowerCurve curve(0, 4 * kSecond, 4);
  curve.add(0, kSecond, 10);
  curve.add(3 * kSecond, 4 * kSecond, 30);
  expect_watts(curve, {10, std::nullopt, std::nullopt, 30});
}

TEST(PowerCurve, StandsASpanWithoutLength) {
  PowerCurve curve(5, 5, 3);
  curve.add(5, 5, 1);
  EXPECT_EQ(curve.watts().size(), 3u);
}

}  // namespace
}  // namespace joulemap
