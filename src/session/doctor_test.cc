// SPDX-License-Identifier: Apache-2.0
#include "session/doctor.h"

#include <gtest/gtest.h>

#include "support/sysroots.h"

namespace joulemap::session {
namespace {

TEST(Doctor, ReportsFrozenCounters) {
  const Result<DoctorResult> result =
      examine_sensors({.root = SystemRoot{sysroot("frozen-counter")}, .sensors = "powercap"});
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->sensors[0].diagnostics.contains("counter_still"));
}

}  // namespace
}  // namespace joulemap::session
