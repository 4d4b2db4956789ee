// SPDX-License-Identifier: Apache-2.0
#include "sensors/perf_event/perf_event_sensor.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include "base/clock.h"
#include "support/sysroots.h"
#include "support/temporary_directory.h"

namespace joulemap::sensors {
namespace {

TEST(RaplPmu, ReadsTypeConfigScaleAndCpus) {
  const Result<RaplPmu> pmu = read_rapl_pmu(SystemRoot{sysroot("intel-2socket")});
  ASSERT_TRUE(pmu.has_value());
  EXPECT_EQ(pmu->pmu_type, 9u);
  EXPECT_EQ(pmu->package_cpus, (std::vector<int>{0, 4}));
  ASSERT_EQ(pmu->events.size(), 2u);
  EXPECT_EQ(pmu->events[0].name, "energy-pkg");
  EXPECT_EQ(pmu->events[0].config, 2u);
  EXPECT_DOUBLE_EQ(pmu->events[0].joules_per_count, 0x1p-32);
}

TEST(RaplPmu, OpensEveryEventOnceForEachPackage) {
  const SystemRoot root{sysroot("intel-2socket")};
  const std::vector<RaplCounter> counters = list_rapl_counters(*read_rapl_pmu(root), root);
  ASSERT_EQ(counters.size(), 4u);
  EXPECT_EQ(counters[0].channel.domain, "package-0");
  EXPECT_EQ(counters[1].channel.domain, "dram-0");
  EXPECT_EQ(counters[2].channel.domain, "package-1");
  EXPECT_EQ(counters[2].cpu, 4);
}

TEST(RaplPmu, NestsCoresInThePackageAndThePackageInThePlatform) {
  const SystemRoot root{sysroot("psys-laptop")};
  for (const RaplCounter& counter : list_rapl_counters(*read_rapl_pmu(root), root)) {
    const std::string& domain = counter.channel.domain;
    const std::string expected = domain == "psys" ? "" : domain == "package-0" ? "psys" : "package-0";
    EXPECT_EQ(counter.channel.part_of, expected) << domain;
  }
}

TEST(RaplPmu, AFolderWithoutEventsIsNoSensor) {
  const Result<RaplPmu> pmu = read_rapl_pmu(SystemRoot{sysroot("no-sensors")});
  ASSERT_TRUE(pmu.has_value());
  EXPECT_TRUE(pmu->events.empty());
}

TEST(RaplPmu, RefusesGarbageWithThePathInTheMessage) {
  const Result<RaplPmu> pmu = read_rapl_pmu(SystemRoot{sysroot("garbage")});
  ASSERT_FALSE(pmu.has_value());
  EXPECT_NE(pmu.error().message.find("events/energy-pkg"), std::string::npos);
}

TEST(RaplPmu, NamesDiesThatShareAPackage) {
  const TemporaryDirectory directory;
  for (const int cpu : {0, 8}) {
    const std::string topology = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    directory.write(topology + "physical_package_id", "0\n");
    directory.write(topology + "die_id", cpu == 0 ? "0\n" : "1\n");
  }
  const RaplPmu pmu{9, {{"energy-pkg", 2, 1e-9}}, {0, 8}};
  const std::vector<RaplCounter> counters = list_rapl_counters(pmu, SystemRoot{directory.path()});
  EXPECT_EQ(counters[1].channel.domain, "package-0-die-1");
}

TEST(RaplPmu, ParsesOnlyPlainEventConfigs) {
  EXPECT_EQ(parse_event_config("event=0x02\n"), 2u);
  for (const char* text : {"", "event=", "umask=1", "event=1,umask=2"}) EXPECT_FALSE(parse_event_config(text)) << text;
}

// The kernel's CPU clock replaces RAPL: an "energy" of one joule a second that every machine can count.
TEST(PerfEvent, ReadsACounterOfTheRealKernel) {
  RaplCounter counter{{"energy-pkg", PERF_COUNT_SW_CPU_CLOCK, 1e-9}, 0, {}};
  counter.channel.name = "clock";
  const RaplPmu pmu{PERF_TYPE_SOFTWARE, {counter.event}, {0}};
  Result<std::unique_ptr<Sensor>> sensor = open_rapl_counters(pmu, {counter});
  if (!sensor && sensor.error().code == ErrorCode::permission) GTEST_SKIP() << sensor.error().message;
  ASSERT_TRUE(sensor.has_value()) << sensor.error().message;
  std::vector<Reading> initial_readings(1);
  std::vector<Reading> final_readings(1);
  (*sensor)->read(initial_readings);
  while (monotonic_ns() < initial_readings[0].after_ns + 5 * kNanosecondsPerMillisecond) {
  }
  (*sensor)->read(final_readings);
  ASSERT_EQ(final_readings[0].code, ReadCode::ok);
  EXPECT_GE(final_readings[0].raw - initial_readings[0].raw, 4'000'000u);
}

TEST(PerfEvent, ReportsTheEventThatTheKernelRefused) {
  RaplCounter counter{{"energy-pkg", 0xffff, 1e-9}, 0, {}};
  counter.channel.source = "power/energy-pkg/ on CPU 0";
  const Result<std::unique_ptr<Sensor>> sensor = open_rapl_counters({PERF_TYPE_SOFTWARE, {}, {0}}, {counter});
  ASSERT_FALSE(sensor.has_value());
  EXPECT_NE(sensor.error().message.find("power/energy-pkg/"), std::string::npos);
}

TEST(PerfEvent, PerfEventIsOffOnAFakeMachine) {
  const ProbeResult probe = probe_perf_event(ProbeContext(SystemRoot{sysroot("intel-2socket")}));
  EXPECT_EQ(probe.status.state, SensorState::absent);
  EXPECT_TRUE(probe.sensors.empty());
}

}  // namespace
}  // namespace joulemap::sensors
