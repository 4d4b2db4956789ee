// SPDX-License-Identifier: Apache-2.0
#include "sensors/estimate/estimate_sensor.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "sensors/estimate/machine_description.h"
#include "support/sysroots.h"
#include "support/temporary_directory.h"

namespace joulemap::sensors {
namespace {

TEST(MachineDescription, FindsPackagesLimitsAndMemory) {
  const MachineDescription machine = describe_machine(SystemRoot{sysroot("intel-2socket")}, 8);
  EXPECT_EQ(machine.package_count, 2);
  ASSERT_EQ(machine.limit_w.size(), 2u);
  EXPECT_DOUBLE_EQ(machine.limit_w[1].value(), 125);
  EXPECT_NEAR(machine.memory_gib.value(), 187.5, 0.1);
}

TEST(PowerModel, UsesThePowerLimitWhereItIsKnown) {
  const std::vector<PackageModel> models =
      make_package_models({.package_count = 1, .thread_count = 8, .limit_w = {95.0}, .memory_gib = {}});
  ASSERT_EQ(models.size(), 1u);
  EXPECT_DOUBLE_EQ(models[0].limit_w, 95);
  EXPECT_NE(models[0].formula.find("its power limit"), std::string::npos);
}

TEST(PowerModel, ThePowerModelIsLessCertainWithoutAPowerLimit) {
  const PackageModel model_with_limit =
      make_package_models({.package_count = 1, .thread_count = 8, .limit_w = {95.0}, .memory_gib = {}})[0];
  const PackageModel model_without_limit =
      make_package_models({.package_count = 1, .thread_count = 8, .limit_w = {}, .memory_gib = {}})[0];
  EXPECT_DOUBLE_EQ(model_without_limit.limit_w, 28);
  EXPECT_GT(model_without_limit.relative_uncertainty, model_with_limit.relative_uncertainty);
}

TEST(PowerModel, SplitsMemoryAcrossPackagesUnlessUnknown) {
  const auto model = make_memory_model({.package_count = 2, .thread_count = 8, .limit_w = {}, .memory_gib = 116});
  ASSERT_TRUE(model);
  EXPECT_DOUBLE_EQ(model->power_w, (16 * 0.2 + 100 * 0.1) / 2);
  EXPECT_FALSE(make_memory_model({.package_count = 1, .thread_count = 1, .limit_w = {}, .memory_gib = {}}));
}

TEST(Estimate, AnEstimateIsLabelledAndHasItsFormula) {
  const ProbeResult probe = probe_estimate(ProbeContext(SystemRoot{sysroot("no-sensors")}));
  ASSERT_EQ(probe.status.state, SensorState::estimated);
  ASSERT_EQ(probe.status.channels.size(), 2u);
  for (const Channel& channel : probe.status.channels) {
    EXPECT_EQ(channel.provenance, Provenance::estimated);
    EXPECT_FALSE(channel.model.empty());
    EXPECT_GT(channel.relative_uncertainty, 0);
  }
}

TEST(BusyTime, FollowsTicksButGrowsNoFasterThanTime) {
  BusyTime busy_time;
  EXPECT_EQ(busy_time.busy_s(0, 0), 0);
  EXPECT_DOUBLE_EQ(busy_time.busy_s(2, 4 * kNanosecondsPerSecond), 2);
  EXPECT_DOUBLE_EQ(busy_time.busy_s(2.01, 4'001 * kNanosecondsPerMillisecond), 2.001) << "1 ms cannot have 10 ms";
  EXPECT_DOUBLE_EQ(busy_time.busy_s(2.01, 4'002 * kNanosecondsPerMillisecond), 2.002);
  EXPECT_DOUBLE_EQ(busy_time.busy_s(2.01, 5 * kNanosecondsPerSecond), 2.01) << "the rest of the tick follows";
  EXPECT_DOUBLE_EQ(busy_time.busy_s(0, 6 * kNanosecondsPerSecond), 2.01) << "never decreases";
}

TEST(Estimate, IsAtMostFullPowerHoweverManyTicksArrive) {
  const TemporaryDirectory directory;
  const auto write_ticks = [&](int busy) {
    directory.write("proc/stat",
                    "cpu  " + std::to_string(busy) + " 0 0 1000 0 0 0 0 0 0\ncpu0 1 2 3 4\ncpu1 1 2 3 4\n");
  };
  write_ticks(1000);
  const ProbeResult probe = probe_estimate(ProbeContext(SystemRoot{directory.path()}));
  ASSERT_EQ(probe.status.channels.size(), 1u);  // without /proc/meminfo there is no memory channel
  std::vector<Reading> initial_readings(1);
  std::vector<Reading> final_readings(1);
  probe.sensors.front()->read(initial_readings);
  write_ticks(1400);  // four busy seconds of one CPU
  probe.sensors.front()->read(final_readings);
  const double elapsed_s = seconds(final_readings[0].time_ns() - initial_readings[0].time_ns());
  const double joules = static_cast<double>(final_readings[0].raw - initial_readings[0].raw) * 1e-6;
  EXPECT_NEAR(joules, 7 * elapsed_s, 2e-6) << "3.5 W x 2 threads";
}

TEST(Estimate, ReportsAMissingProcFilesystem) {
  const TemporaryDirectory directory;
  const ProbeResult probe = probe_estimate(ProbeContext(SystemRoot{directory.path()}));
  EXPECT_EQ(probe.status.state, SensorState::absent);
  EXPECT_NE(probe.status.reason.find("/proc/stat"), std::string::npos);
}

}  // namespace
}  // namespace joulemap::sensors
