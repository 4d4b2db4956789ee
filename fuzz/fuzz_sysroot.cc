// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes sensor discovery on a folder that imitates /sys and /proc, with arbitrary text in the files. Every probe must
// return a reason for its result, and reading the sensors that it opened must not crash. The input is texts separated
// by a zero byte, written in order into kMachineFiles.
#include <stdlib.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "sensors/backends.h"

namespace {

constexpr std::array<const char*, 17> kMachineFiles = {
    "sys/class/powercap/intel-rapl:0/name",
    "sys/class/powercap/intel-rapl:0/energy_uj",
    "sys/class/powercap/intel-rapl:0/max_energy_range_uj",
    "sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw",
    "sys/class/powercap/intel-rapl:0:0/name",
    "sys/class/powercap/intel-rapl:0:0/energy_uj",
    "sys/class/powercap/intel-rapl-mmio:0/name",
    "sys/class/powercap/intel-rapl-mmio:0/energy_uj",
    "sys/class/hwmon/hwmon0/name",
    "sys/class/hwmon/hwmon0/power1_average",
    "sys/class/hwmon/hwmon0/energy1_input",
    "sys/class/hwmon/hwmon0/energy1_label",
    "sys/devices/system/cpu/cpu0/topology/physical_package_id",
    "proc/stat",
    "proc/meminfo",
    "proc/cpuinfo",
    "proc/1/cgroup",
};

// One folder for the whole process, in memory where /dev/shm exists: creating one per input would take most of the
// time.
const std::string& machine_folder() {
  static const std::string folder = [] {
    std::string path =
        std::filesystem::exists("/dev/shm") ? "/dev/shm/joulemap-fuzz-XXXXXX" : "/tmp/joulemap-fuzz-XXXXXX";
    JOULEMAP_CHECK(::mkdtemp(path.data()) != nullptr, "no folder");
    for (const char* file : kMachineFiles)
      std::filesystem::create_directories((std::filesystem::path(path) / file).parent_path());
    return path;
  }();
  return folder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace joulemap;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* file : kMachineFiles) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    std::ofstream(machine_folder() + "/" + file, std::ios::binary | std::ios::trunc) << text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const sensors::ProbeContext context(SystemRoot{machine_folder()});
  for (const sensors::SensorBackend& backend : sensors::sensor_backends()) {
    const sensors::ProbeResult probe = backend.probe_sensors(context);
    JOULEMAP_CHECK(!probe.status.reason.empty(), "a verdict without a reason");
    JOULEMAP_CHECK(probe.sensors.empty() == probe.status.channels.empty(), "a sensor without channels");
    for (const std::unique_ptr<sensors::Sensor>& sensor : probe.sensors) {
      std::vector<Reading> readings(sensor->channels().size());
      sensor->read(readings);
    }
  }
  return 0;
}
