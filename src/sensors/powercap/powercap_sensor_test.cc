// SPDX-License-Identifier: Apache-2.0
#include "sensors/powercap/powercap_sensor.h"

#include <gtest/gtest.h>

#include "sensors/powercap/zones.h"
#include "support/sysroots.h"
#include "support/temporary_directory.h"

namespace joulemap::sensors {
namespace {

ProbeResult probe(const std::string& root) {
  return probe_powercap(ProbeContext(SystemRoot{root}, "/usr/bin/joulemap"));
}

const Channel& channel(const ProbeResult& probe, std::string_view name) {
  for (const Channel& candidate : probe.status.channels) {
    if (candidate.name == name) return candidate;
  }
  ADD_FAILURE() << "no channel " << name;
  return probe.status.channels.front();
}

TEST(Powercap, FindsPackagesAndDramOfTwoSockets) {
  const ProbeResult machine = probe(sysroot("intel-2socket"));
  ASSERT_EQ(machine.status.state, SensorState::measured);
  ASSERT_EQ(machine.status.channels.size(), 4u);
  EXPECT_TRUE(channel(machine, "dram-1").part_of.empty());  // a subzone whose energy the package does not include
  EXPECT_EQ(channel(machine, "dram-1").wrap_range, 65712999613u);

  std::vector<Reading> readings(4);
  machine.sensors.front()->read(readings);
  EXPECT_EQ(readings[0].raw, 83412345678u);
  EXPECT_EQ(readings[0].code, ReadCode::ok);
}

TEST(Powercap, FindsTheCoresOfAnAmdPackage) {
  EXPECT_EQ(channel(probe(sysroot("amd-zen4")), "core-0").part_of, "package-0");
}

TEST(Powercap, NestsThePackageInThePlatform) {
  const ProbeResult machine = probe(sysroot("psys-laptop"));
  EXPECT_EQ(channel(machine, "package-0").part_of, "psys");
  EXPECT_EQ(channel(machine, "core-0").part_of, "package-0");
  EXPECT_TRUE(channel(machine, "psys").part_of.empty());
}

TEST(Powercap, TheMmioPackageIsASecondSensorOfTheSameDomain) {
  const ProbeResult machine = probe(sysroot("mmio-duplicate"));
  EXPECT_EQ(machine.status.channels.front().name, "package-0");
  EXPECT_EQ(channel(machine, "package-0-mmio").domain, "package-0");
}

TEST(Powercap, NamesTheFileAndTheTextOfGarbage) {
  const ProbeResult machine = probe(sysroot("garbage"));
  EXPECT_EQ(machine.status.state, SensorState::absent);
  EXPECT_TRUE(machine.sensors.empty());
  EXPECT_NE(machine.status.reason.find("intel-rapl:0/energy_uj"), std::string::npos);
}

TEST(Powercap, ReportsThatAVirtualMachineHasNone) {
  const ProbeResult machine = probe(sysroot("no-sensors"));
  EXPECT_EQ(machine.status.state, SensorState::absent);
  EXPECT_NE(machine.status.reason.find("virtual machine (Amazon EC2 m5.large)"), std::string::npos);
  EXPECT_NE(machine.status.remedy.find("bare-metal"), std::string::npos);
}

TEST(Powercap, WarnsWhenTheRangeIsUnknown) {
  const TemporaryDirectory directory;
  directory.write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
  directory.write("sys/class/powercap/intel-rapl:0/energy_uj", "5\n");
  const ProbeResult machine = probe(directory.path());
  EXPECT_TRUE(machine.status.diagnostics.contains("unknown_range"));
  EXPECT_FALSE(machine.status.channels.front().wrap_range);
}

TEST(PowercapZones, NamesDiesAndTheirChildren) {
  std::vector<PowercapZone> zones(4);
  zones[0] = {.id = "intel-rapl:0", .name = "package-0-die-0"};
  zones[1] = {.id = "intel-rapl:0:0", .name = "dram"};
  zones[2] = {.id = "intel-rapl:1", .name = "package-0-die-1"};
  zones[3] = {.id = "intel-rapl:1:0", .name = "core"};
  assign_zone_domains(zones);
  EXPECT_EQ(zones[1].domain, "dram-0-die-0");
  EXPECT_EQ(zones[3].domain, "core-0-die-1");
  EXPECT_EQ(zones[3].part_of, "package-0-die-1");
}

TEST(PowercapZones, NamesAChildWithoutItsParentByItsNumber) {
  std::vector<PowercapZone> zones(1);
  zones[0] = {.id = "intel-rapl:1:0", .name = "dram"};
  assign_zone_domains(zones);
  EXPECT_EQ(zones[0].domain, "dram-1");
}

TEST(Powercap, ShowsAZoneWithoutANameButNeverCountsIt) {
  const TemporaryDirectory directory;
  directory.write("sys/class/powercap/intel-rapl:7/energy_uj", "5\n");
  const ProbeResult machine = probe(directory.path());
  ASSERT_EQ(machine.status.channels.size(), 1u);
  EXPECT_EQ(machine.status.channels[0].domain, "intel-rapl:7");
  EXPECT_FALSE(machine.status.channels[0].is_countable);
}

TEST(PowercapZones, DistinguishesZonesOfTheSameName) {
  std::vector<PowercapZone> zones(2);
  zones[0] = {.id = "intel-rapl:0", .name = "psys"};
  zones[1] = {.id = "intel-rapl:1", .name = "psys"};
  assign_zone_domains(zones);
  EXPECT_EQ(zones[0].domain, "psys");
  EXPECT_EQ(zones[1].domain, "psys-1");
  EXPECT_EQ(zones[1].part_of, "psys");  // so that the platform is counted once
}

}  // namespace
}  // namespace joulemap::sensors
