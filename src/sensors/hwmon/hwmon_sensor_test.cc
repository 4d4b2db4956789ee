// SPDX-License-Identifier: Apache-2.0
#include "sensors/hwmon/hwmon_sensor.h"

#include <gtest/gtest.h>

#include "sensors/hwmon/hwmon_devices.h"
#include "support/sysroots.h"
#include "support/temporary_directory.h"

namespace joulemap::sensors {
namespace {

ProbeResult probe(const std::string& root) { return probe_hwmon(ProbeContext(SystemRoot{root})); }

TEST(HwmonFileName, KnowsEnergyAndPowerFilesOnly) {
  EXPECT_EQ(parse_hwmon_file_name("energy12_input")->channel_index, "12");
  EXPECT_TRUE(parse_hwmon_file_name("power1_average")->is_average);
  for (const char* name :
       {"temp1_input", "power_input", "power1_cap", "energy1_average", "energy1_label", "power99999_input"}) {
    EXPECT_FALSE(parse_hwmon_file_name(name)) << name;
  }
}

TEST(Hwmon, ReadsTheAveragePowerAndAddressOfAnAmdGpu) {
  const ProbeResult machine = probe(sysroot("amd-zen4"));
  ASSERT_EQ(machine.status.state, SensorState::measured);
  ASSERT_EQ(machine.status.channels.size(), 1u);
  const Channel& channel = machine.status.channels[0];
  EXPECT_EQ(channel.domain, "amdgpu-0");
  EXPECT_EQ(channel.kind, ChannelKind::gauge);
  EXPECT_TRUE(channel.is_countable);
  EXPECT_NE(channel.source.find("power1_average (0000:03:00.0)"), std::string::npos);
  std::vector<Reading> readings(1);
  machine.sensors.front()->read(readings);
  EXPECT_DOUBLE_EQ(static_cast<double>(readings[0].raw) * channel.scale, 37.0);
}

TEST(Hwmon, NumbersCardsAndNestsTheirCounters) {
  const TemporaryDirectory directory;
  for (const char* device : {"hwmon3", "hwmon10"}) {
    const std::string folder = std::string("sys/class/hwmon/") + device;
    directory.write(folder + "/name", "xe\n");
    directory.write(folder + "/energy1_input", "100\n");
    directory.write(folder + "/energy1_label", "card\n");
    directory.write(folder + "/energy2_input", "50\n");
    directory.write(folder + "/energy2_label", "pkg\n");
  }
  const Result<std::vector<HwmonFile>> files = find_hwmon_files(SystemRoot{directory.path()});
  ASSERT_TRUE(files.has_value());
  ASSERT_EQ(files->size(), 4u);
  EXPECT_EQ((*files)[0].channel.domain, "intel-gpu-0");
  EXPECT_EQ((*files)[1].channel.domain, "intel-gpu-0-pkg");
  EXPECT_EQ((*files)[1].channel.part_of, "intel-gpu-0");
  EXPECT_EQ((*files)[2].channel.domain, "intel-gpu-1");
}

TEST(Hwmon, NumbersCardsOfBothIntelDriversTogether) {
  const TemporaryDirectory directory;
  for (const auto& [device, driver] : {std::pair{"hwmon2", "i915\n"}, std::pair{"hwmon3", "xe\n"}}) {
    directory.write(std::string("sys/class/hwmon/") + device + "/name", driver);
    directory.write(std::string("sys/class/hwmon/") + device + "/energy1_input", "100\n");
  }
  const Result<std::vector<HwmonFile>> files = find_hwmon_files(SystemRoot{directory.path()});
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ((*files)[0].channel.domain, "intel-gpu-0");
  EXPECT_EQ((*files)[1].channel.domain, "intel-gpu-1");
}

TEST(Hwmon, MapsSocketsOfAmdEnergyToPackages) {
  const TemporaryDirectory directory;
  directory.write("sys/class/hwmon/hwmon0/name", "amd_energy\n");
  directory.write("sys/class/hwmon/hwmon0/energy1_input", "7\n");
  directory.write("sys/class/hwmon/hwmon0/energy1_label", "Ecore000\n");
  directory.write("sys/class/hwmon/hwmon0/energy2_input", "9\n");
  directory.write("sys/class/hwmon/hwmon0/energy2_label", "Esocket1\n");
  const Result<std::vector<HwmonFile>> files = find_hwmon_files(SystemRoot{directory.path()});
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ((*files)[0].channel.domain, "package-1");
}

TEST(Hwmon, ShowsButNeverCountsAMeterOfUnknownExtent) {
  const TemporaryDirectory directory;
  directory.write("sys/class/hwmon/hwmon0/name", "power_meter\n");
  directory.write("sys/class/hwmon/hwmon0/power1_average", "250000000\n");
  const ProbeResult machine = probe(directory.path());
  ASSERT_EQ(machine.status.channels.size(), 1u);
  EXPECT_FALSE(machine.status.channels[0].is_countable);
}

TEST(Hwmon, ReportsTheFileWithoutANumber) {
  const ProbeResult machine = probe(sysroot("garbage"));
  EXPECT_EQ(machine.status.state, SensorState::absent);
  EXPECT_NE(machine.status.reason.find("power1_average"), std::string::npos);
}

}  // namespace
}  // namespace joulemap::sensors
