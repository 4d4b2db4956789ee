// SPDX-License-Identifier: Apache-2.0
#include "fake_nvml/script.h"

#include <gtest/gtest.h>

namespace joulemap::fake_nvml {
namespace {

TEST(FakeNvmlScript, IntegratesASquareWaveExactly) {
  const auto script = parse_script("device GPU-1\n power 0:100 0.5:400 repeat 1\n");
  ASSERT_TRUE(script);
  const PowerCurve& power = script->devices.front().power;
  EXPECT_DOUBLE_EQ(power.compute_joules_until(0.75), 150);
  EXPECT_DOUBLE_EQ(power.compute_joules_until(10.5), 2550);
  EXPECT_DOUBLE_EQ(power.compute_joules_until(-1), -250);
}

TEST(FakeNvmlScript, RepeatsTheLastPowerOfAList) {
  const auto script = parse_script("device GPU-1\n power 0:100 2:300  # load\n");
  ASSERT_TRUE(script);
  EXPECT_DOUBLE_EQ(script->devices.front().power.compute_joules_until(4), 800);
}

TEST(FakeNvmlScript, CountsTheEnergyUpToTheLastUpdate) {
  const auto script = parse_script("device GPU-1\n power 0:100\n counter_phase_ms 30\n");
  ASSERT_TRUE(script);
  const ScriptedDevice& device = script->devices.front();
  EXPECT_EQ(device.counter_mj(0.229), device.counter_mj(0.131));
  EXPECT_EQ(device.counter_mj(0.231) - device.counter_mj(0.229), 10'000u);
}

TEST(FakeNvmlScript, RefusesUnknownLines) {
  EXPECT_FALSE(parse_script("device GPU-1\n powre 0:100\n"));
  EXPECT_FALSE(parse_script("power 0:100\n"));
  EXPECT_FALSE(parse_script("device GPU-1\n power 0-100\n"));
  EXPECT_TRUE(parse_script("# nothing\n\n"));
}

}  // namespace
}  // namespace joulemap::fake_nvml
