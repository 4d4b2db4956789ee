// SPDX-License-Identifier: Apache-2.0
//
// Machine state from the kernel that decides whether rows are comparable: governor, turbo, CPU time used and stolen,
// swap, temperatures, throttling. Reads only sysfs and procfs files below `root`, so that tests can use a fake machine.
// Each call reads at once and caches nothing; unavailable values are nullopt. Degrees Celsius, fractions, bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/system_root.h"

namespace joulemap::experiment {

// CPU time of the machine since boot, in ticks. cpu_busy_share() and cpu_steal_share() take two of them.
struct CpuTicks {
  std::uint64_t busy_ticks = 0;
  std::uint64_t stolen_ticks = 0;
  std::uint64_t total_ticks = 0;
};
std::optional<CpuTicks> read_cpu_ticks(const SystemRoot& root);
// Busy and stolen fraction of CPU time between two moments. None if one is unknown or no time passed, as on a fake
// machine.
std::optional<double> cpu_busy_share(const std::optional<CpuTicks>& begin, const std::optional<CpuTicks>& end);
std::optional<double> cpu_steal_share(const std::optional<CpuTicks>& begin, const std::optional<CpuTicks>& end);

// One-minute load average divided by the number of CPUs.
std::optional<double> load_per_cpu(const SystemRoot& root);

// Paths of the sysfs files that contain and set the governor of each CPU.
std::vector<std::string> governor_files(const SystemRoot& root);
// The distinct governors, comma-separated: "performance, powersave". Empty if there are none.
std::string read_governors(const SystemRoot& root);

struct TurboFile {
  std::string path;
  std::string on_value;  // content when turbo is on
  std::string off_value;
};
std::optional<TurboFile> find_turbo_file(const SystemRoot& root);
std::optional<bool> is_turbo_enabled(const SystemRoot& root);

std::optional<std::uint64_t> swap_used_bytes(const SystemRoot& root);

// CPU temperatures by name: "coretemp/Package id 0".
std::map<std::string, double> cpu_temperatures(const SystemRoot& root);

// Thermal throttling events of the CPUs since boot.
std::optional<std::uint64_t> thermal_throttle_count(const SystemRoot& root);

}  // namespace joulemap::experiment
