// SPDX-License-Identifier: Apache-2.0
#include "energy/power_profile.h"
#include "base/clock.h"

#include <gtest/gtest.h>

namespace joulemap {
namespace {

TEST(PowerProfile, EachValueCoversTheTimeSinceThePreviousOne) {
  PowerProfile profile;
  for (std::int64_t at_ms = 0; at_ms <= 2000; at_ms += 20)
    profile.add({at_ms * kNanosecondsPerMillisecond, at_ms <= 1000 ? 100.0 : 300.0});
  EXPECT_NEAR(profile.energy_in_span_j({0, 2 * kNanosecondsPerSecond}).value(), 400, 1e-9);
  EXPECT_NEAR(profile.energy_in_span_j({500 * kNanosecondsPerMillisecond, 1500 * kNanosecondsPerMillisecond}).value(),
              50 + 150, 1e-9);
  EXPECT_NEAR(
      profile.energy_in_span_j({1'005 * kNanosecondsPerMillisecond, 1'010 * kNanosecondsPerMillisecond}).value(), 1.5,
      1e-9);
}

TEST(PowerProfile, HasNoValueInGapsAndOutsideItsRange) {
  PowerProfile profile;
  EXPECT_FALSE(profile.energy_in_span_j({0, kNanosecondsPerSecond}));
  for (const std::int64_t at_ms : {0, 20, 40, 1900, 1920, 2000}) profile.add({at_ms * kNanosecondsPerMillisecond, 700});
  EXPECT_TRUE(profile.energy_in_span_j({0, 40 * kNanosecondsPerMillisecond}));
  EXPECT_FALSE(profile.energy_in_span_j({0, 2 * kNanosecondsPerSecond}));
  EXPECT_FALSE(profile.energy_in_span_j({40 * kNanosecondsPerMillisecond, 1900 * kNanosecondsPerMillisecond}));
  EXPECT_FALSE(profile.energy_in_span_j({1900 * kNanosecondsPerMillisecond, 3000 * kNanosecondsPerMillisecond}));
}

TEST(PowerProfile, HasTheNearestPowerBesideTheHistory) {
  PowerProfile profile;
  for (std::int64_t at_ms = 10; at_ms <= 990; at_ms += 20) profile.add({at_ms * kNanosecondsPerMillisecond, 100});
  EXPECT_NEAR(profile.energy_in_span_j({0, kNanosecondsPerSecond}).value(), 100, 1e-9);
  EXPECT_NEAR(profile.cumulative_energy_j(10 * kNanosecondsPerMillisecond) - profile.cumulative_energy_j(0), 1, 1e-9);
}

TEST(PowerProfile, DropsAValueThatGoesBackInTime) {
  PowerProfile profile;
  profile.add({0, 100});
  profile.add({100 * kNanosecondsPerMillisecond, 100});
  profile.add({50 * kNanosecondsPerMillisecond, 900});
  profile.add({200 * kNanosecondsPerMillisecond, 100});
  EXPECT_NEAR(profile.energy_in_span_j({0, 200 * kNanosecondsPerMillisecond}).value(), 20, 1e-9);
}

TEST(PowerProfile, ALongHistoryPreservesItsSums) {
  PowerProfile profile;
  constexpr std::int64_t kValues = 600'000;
  for (std::int64_t i = 0; i <= kValues; ++i) profile.add({i * 20 * kNanosecondsPerMillisecond, 250});
  EXPECT_NEAR(profile.energy_in_span_j({0, kValues * 20 * kNanosecondsPerMillisecond}).value(), 250 * 0.02 * kValues,
              1e-3);
  EXPECT_NEAR(profile.energy_in_span_j({1000 * kNanosecondsPerSecond, 1002 * kNanosecondsPerSecond}).value(), 500,
              1e-6);
}

}  // namespace
}  // namespace joulemap
