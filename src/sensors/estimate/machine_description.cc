// SPDX-License-Identifier: Apache-2.0
#include "sensors/estimate/machine_description.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>

#include "base/small_file.h"
#include "base/text.h"
#include "sensors/powercap/zones.h"

namespace joulemap::sensors {
namespace {

// Plausible power limits. Where no limit is set, firmware writes 0 or the largest number of the register.
constexpr double kMinPlausiblePowerLimit_w = 2;
constexpr double kMaxPlausiblePowerLimit_w = 2000;
constexpr double kKibPerGib = 1024.0 * 1024.0;

int count_packages(const SystemRoot& root) {
  const std::string cpus = root.path("/sys/devices/system/cpu");
  const Result<std::vector<std::string>> names = list_directory(cpus);
  std::set<std::uint64_t> packages;
  if (names) {
    for (const std::string& name : *names) {
      if (!name.starts_with("cpu") || !parse_u64(name.substr(3))) continue;
      const Result<std::string> id = read_small_file(cpus + "/" + name + "/topology/physical_package_id");
      const auto package = id ? parse_u64(*id) : std::nullopt;
      if (package) packages.insert(*package);
    }
  }
  return packages.empty() ? 1 : static_cast<int>(packages.size());
}

std::optional<double> read_power_limit_w(const PowercapZone& zone) {
  for (const std::string_view file : {"/constraint_0_max_power_uw", "/constraint_0_power_limit_uw"}) {
    const Result<std::string> text = read_small_file(zone.directory + std::string(file));
    const auto microwatts = text ? parse_u64(*text) : std::nullopt;
    if (!microwatts) continue;
    const double limit_w = static_cast<double>(*microwatts) * 1e-6;
    if (limit_w >= kMinPlausiblePowerLimit_w && limit_w <= kMaxPlausiblePowerLimit_w) return limit_w;
  }
  return std::nullopt;
}

std::optional<double> read_memory_gib(const SystemRoot& root) {
  const Result<std::string> text = read_small_file(root.path("/proc/meminfo"));
  if (!text) return std::nullopt;
  for (const std::string_view line : split(*text, '\n')) {
    if (!line.starts_with("MemTotal:")) continue;
    const std::vector<std::string_view> fields = split_whitespace(line);
    const auto kib = fields.size() >= 2 ? parse_u64(fields[1]) : std::nullopt;
    if (kib) return static_cast<double>(*kib) / kKibPerGib;
  }
  return std::nullopt;
}

}  // namespace

MachineDescription describe_machine(const SystemRoot& root, int threads) {
  MachineDescription machine;
  machine.package_count = count_packages(root);
  machine.thread_count = threads;
  machine.limit_w.resize(static_cast<std::size_t>(machine.package_count));
  machine.memory_gib = read_memory_gib(root);
  const Result<std::vector<PowercapZone>> zones = find_powercap_zones(root);
  if (!zones) return machine;
  for (int package = 0; package < machine.package_count; ++package) {
    for (const PowercapZone& zone : *zones) {
      if (zone.is_duplicate || zone.domain != fmt::format("package-{}", package)) continue;
      machine.limit_w[static_cast<std::size_t>(package)] = read_power_limit_w(zone);
    }
  }
  return machine;
}

}  // namespace joulemap::sensors
