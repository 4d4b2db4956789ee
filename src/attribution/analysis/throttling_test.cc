// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/throttling.h"

#include <gtest/gtest.h>

namespace joulemap::attribution {
namespace {

Diagnostics diagnose_throttling(std::initializer_list<std::uint64_t> reason_masks) {
  ThrottlingReadings throttling_readings;
  for (const std::uint64_t reasons : reason_masks) throttling_readings.add(reasons);
  Diagnostics diagnostics;
  throttling_readings.add_diagnostics("gpu0", diagnostics);
  return diagnostics;
}

TEST(ThrottlingReadings, ReportsAnActivePowerLimit) {
  const Diagnostics diagnostics = diagnose_throttling({0, 4, 0, 4});
  EXPECT_TRUE(diagnostics.contains("power_limited"));
  EXPECT_FALSE(diagnostics.contains("clocks_slowed"));
}

TEST(ThrottlingReadings, ReportsThermalAndBrakeSlowdowns) {
  for (const std::uint64_t reason : {0x8, 0x20, 0x40, 0x80}) {
    EXPECT_TRUE(diagnose_throttling({0, reason}).contains("clocks_slowed")) << reason;
  }
}

TEST(ThrottlingReadings, IgnoresIdleClocksAndUserSettings) {
  const Diagnostics diagnostics = diagnose_throttling({0x1, 0x2, 0x10, 0x100});
  EXPECT_FALSE(diagnostics.contains("power_limited"));
  EXPECT_FALSE(diagnostics.contains("clocks_slowed"));
}

TEST(ThrottlingReadings, CountsReadingsWithAnyReasonOnce) {
  ThrottlingReadings throttling_readings;
  for (const std::uint64_t reasons : {0x0, 0x4, 0x24, 0x1}) throttling_readings.add(reasons);
  EXPECT_EQ(throttling_readings.clock_readings().readings, 4u);
  EXPECT_EQ(throttling_readings.clock_readings().throttled, 2u);
}

TEST(ThrottlingReadings, IgnoresASingleReading) { EXPECT_FALSE(diagnose_throttling({4}).contains("power_limited")); }

}  // namespace
}  // namespace joulemap::attribution
