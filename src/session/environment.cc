// SPDX-License-Identifier: Apache-2.0
#include "session/environment.h"

#include <sys/utsname.h>

#include <string_view>

#include "base/small_file.h"
#include "base/text.h"

namespace joulemap::session {
namespace {

constexpr std::size_t kMaxCpuinfoBytes = 4096;

// The value of the first line "key : value"; empty if there is none.
std::string find_value_of_key(std::string_view text, std::string_view key) {
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos) return std::string(trim(line.substr(colon + 1)));
  }
  return {};
}

struct EnvironmentFactFile {
  std::string_view name;
  std::string_view path;
};

constexpr EnvironmentFactFile kEnvironmentFactFiles[] = {
    {"governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"},
    {"frequency_driver", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"},
    {"no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo"},
    {"boost", "/sys/devices/system/cpu/cpufreq/boost"},
    {"smt_active", "/sys/devices/system/cpu/smt/active"},
    {"cpus_online", "/sys/devices/system/cpu/online"},
    {"load_at_start", "/proc/loadavg"},
};

}  // namespace

std::vector<EnvironmentFact> describe_environment(const SystemRoot& root) {
  std::vector<EnvironmentFact> facts;
  const auto add = [&facts](std::string_view name, std::string_view value) {
    if (!trim(value).empty()) facts.push_back({std::string(name), std::string(trim(value))});
  };
  utsname system{};
  if (::uname(&system) == 0) {
    add("kernel", system.release);
    add("machine", system.machine);
  }
  if (const auto text = read_file_start(root.path("/proc/cpuinfo"), kMaxCpuinfoBytes))
    add("cpu", find_value_of_key(*text, "model name"));
  if (const auto text = read_small_file(root.path("/proc/meminfo")))
    add("memory", find_value_of_key(*text, "MemTotal"));
  for (const EnvironmentFactFile& fact : kEnvironmentFactFiles) {
    if (const auto text = read_small_file(root.path(fact.path))) add(fact.name, *text);
  }
  return facts;
}

}  // namespace joulemap::session
