// SPDX-License-Identifier: Apache-2.0
//
// What the kernel says of the machine that decides whether rows can be compared: governor, turbo, CPU time used and stolen,
// swap, temperatures, throttling. Files of sysfs and procfs only, below `root`, so that a fake machine does. Reads at once,
// keeps nothing; what is not told is nothing. Degrees Celsius, shares, bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/system_root.h"

namespace joulemap::experiment {

// Since boot, in ticks; what lies between two of them is told as shares.
struct CpuTicks {
  std::uint64_t busy = 0;
  std::uint64_t stolen = 0;
  std::uint64_t all = 0;
};
std::optional<CpuTicks> read_cpu_ticks(const SystemRoot& root);
// Nothing where no time went by, as on a fake machine.
std::optional<double> busy_share(const std::optional<CpuTicks>& begin, const std::optional<CpuTicks>& end);
std::optional<double> stolen_share(const std::optional<CpuTicks>& begin, const std::optional<CpuTicks>& end);

// One-minute load for each CPU.
std::optional<double> load_per_cpu(const SystemRoot& root);

// Files that hold the governor of each CPU, and the one that holds whether clocks may go beyond the nominal.
std::vector<std::string> governor_files(const SystemRoot& root);
// What they say; of several that differ all, "performance, powersave". Empty where there are none.
std::string governors(const SystemRoot& root);

struct TurboFile {
  std::string path;
  std::string on;  // what it holds then
  std::string off;
};
std::optional<TurboFile> turbo_file(const SystemRoot& root);
std::optional<bool> turbo(const SystemRoot& root);

std::optional<std::uint64_t> swap_used_bytes(const SystemRoot& root);

// Of the CPUs, by name: "coretemp/Package id 0".
std::map<std::string, double> cpu_temperatures(const SystemRoot& root);

// How often the CPUs have been slowed down by heat, since boot.
std::optional<std::uint64_t> thermal_throttles(const SystemRoot& root);

}  // namespace joulemap::experiment
