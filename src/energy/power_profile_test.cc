// SPDX-License-Identifier: Apache-2.0
#include "energy/power_profile.h"

#include <gtest/gtest.h>

namespace joulemap {
namespace {

constexpr std::int64_t kShapeSecond_ns = 1'000'000'000;
constexpr std::int64_t kShapeMs = kShapeSecond_ns / 1000;

TEST(PowerProfile, EachValueCoversTheTimeSinceThePreviousOne) {
  PowerProfile profile;
  for (std::int64_t at_ms = 0; at_ms <= 2000; at_ms += 20)
    profile.add({at_ms * kShapeMs, at_ms <= 1000 ? 100.0 : 300.0});
  EXPECT_NEAR(profile.energy_in_span_j({0, 2 * kShapeSecond_ns}).value(), 400, 1e-9);
  EXPECT_NEAR(profile.energy_in_span_j({500 * kShapeMs, 1500 * kShapeMs}).value(), 50 + 150, 1e-9);
  EXPECT_NEAR(profile.energy_in_span_j({1'005 * kShapeMs, 1'010 * kShapeMs}).value(), 1.5, 1e-9);
}

TEST(PowerProfile, HasNoValueInGapsAndOutsideItsRange) {
  PowerProfile profile;
  EXPECT_FALSE(profile.energy_in_span_j({0, kShapeSecond_ns}));
  for (const std::int64_t at_ms : {0, 20, 40, 1900, 1920, 2000}) profile.add({at_ms * kShapeMs, 700});
  EXPECT_TRUE(profile.energy_in_span_j({0, 40 * kShapeMs}));
  EXPECT_FALSE(profile.energy_in_span_j({0, 2 * kShapeSecond_ns}));
  EXPECT_FALSE(profile.energy_in_span_j({40 * kShapeMs, 1900 * kShapeMs}));
  EXPECT_FALSE(profile.energy_in_span_j({1900 * kShapeMs, 3000 * kShapeMs}));
}

TEST(PowerProfile, DropsAValueThatGoesBackInTime) {
  PowerProfile profile;
  profile.add({0, 100});
  profile.add({100 * kShapeMs, 100});
  profile.add({50 * kShapeMs, 900});
  profile.add({200 * kShapeMs, 100});
  EXPECT_NEAR(profile.energy_in_span_j({0, 200 * kShapeMs}).value(), 20, 1e-9);
}

TEST(PowerProfile, ALongHistoryPreservesItsSums) {
  PowerProfile profile;
  constexpr std::int64_t kValues = 600'000;
  for (std::int64_t i = 0; i <= kValues; ++i) profile.add({i * 20 * kShapeMs, 250});
  EXPECT_NEAR(profile.energy_in_span_j({0, kValues * 20 * kShapeMs}).value(), 250 * 0.02 * kValues, 1e-3);
  EXPECT_NEAR(profile.energy_in_span_j({1000 * kShapeSecond_ns, 1002 * kShapeSecond_ns}).value(), 500, 1e-6);
}

}  // namespace
}  // namespace joulemap
