// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/machine_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiment/run/machine_state.h"

namespace joulemap::experiment {
namespace {

// NVML API reference, nvmlClocksEventReasons: thermal and hardware slowdown.
constexpr std::uint64_t kSlowedByHeat = 0x8 | 0x20 | 0x40 | 0x80;
constexpr double kMinReportedCoTenantShare = 0.02;

CheckOutcome passed(std::string_view name, std::string found) {
  return {std::string(name), CheckState::passed, false, std::move(found), "", ""};
}

CheckOutcome unknown(std::string_view name, std::string why) {
  return {std::string(name), CheckState::unknown, false, "", std::move(why), ""};
}

CheckOutcome wrong(std::string_view name, std::string found, std::string message, std::string remedy) {
  return {std::string(name), CheckState::warned, false, std::move(found), std::move(message), std::move(remedy)};
}

CheckOutcome check_sensors(std::span<const SensorStatus> sensors) {
  std::string measured;
  std::string remedy = "joulemap doctor tells why";
  for (const SensorStatus& sensor : sensors) {
    if (sensor.state == SensorState::measured) measured += (measured.empty() ? "" : ", ") + sensor.name;
    if (sensor.state == SensorState::denied && !sensor.remedy.empty()) remedy = sensor.remedy;
  }
  if (!measured.empty()) return passed("sensors", measured);
  return wrong("sensors", "none", "no sensor can be read: energies would be estimates or missing",
               remedy + "; or take sensors out of require of [checks]");
}

CheckOutcome check_governor(const SystemRoot& root, const ChecksSpec& spec) {
  const std::string found = governors(root);
  if (found.empty()) return unknown("governor", "this machine tells no governor");
  if (found == spec.governor) return passed("governor", found);
  return wrong("governor", found, fmt::format("the governor is {}, not {}", found, spec.governor),
               "set = [\"governor\"] in [checks] sets and restores it, as root");
}

CheckOutcome check_turbo(const SystemRoot& root, const ChecksSpec& spec) {
  const std::optional<bool> on = is_turbo_enabled(root);
  if (!on) return unknown("turbo", "this machine does not tell whether clocks may go beyond the nominal");
  const std::string found = *on ? "on" : "off";
  if (!spec.turbo || *spec.turbo == *on) return passed("turbo", found);
  return wrong("turbo", found, fmt::format("turbo is {}", found),
               "set = [\"turbo\"] in [checks] sets and restores it, as root");
}

CheckOutcome check_load(const SystemRoot& root, const ChecksSpec& spec, const std::optional<IdleState>& idle) {
  const std::optional<double> share = idle && idle->busy_share ? idle->busy_share : load_per_cpu(root);
  if (!share) return unknown("load", "this machine tells no load");
  const std::string found = fmt::format("{:.1f} % of all CPUs", 100 * *share);
  if (*share <= spec.load_within) return passed("load", found);
  return wrong("load", found, fmt::format("others use {}", found), "stop what else runs: top shows it");
}

CheckOutcome check_swap(const SystemRoot& root) {
  const std::optional<std::uint64_t> used = swap_used_bytes(root);
  if (!used) return unknown("swap", "this machine tells no swap");
  const std::string found = fmt::format("{} MiB", *used >> 20);
  if (*used == 0) return passed("swap", found);
  return wrong("swap", found, fmt::format("{} of swap are in use: rows may wait for the disk", found),
               "swapoff -a && swapon -a, as root, where memory suffices");
}

CheckOutcome check_gpu_processes(const std::optional<IdleState>& idle) {
  if (!idle) return unknown("gpu_processes", "nobody looked: baseline_s and cool_down were left out");
  if (!idle->co_tenant_gpu_share) return passed("gpu_processes", "none seen");
  const std::string found = fmt::format("{:.0f} % of a GPU's time", 100 * *idle->co_tenant_gpu_share);
  if (*idle->co_tenant_gpu_share < kMinReportedCoTenantShare) return passed("gpu_processes", found);
  return wrong("gpu_processes", found, fmt::format("other processes use {}", found),
               "nvidia-smi shows them; wait for their end");
}

CheckOutcome check_throttling(const std::optional<IdleState>& idle) {
  if (!idle) return unknown("throttling", "nobody looked: baseline_s and cool_down were left out");
  if (!idle->throttle_reasons) return passed("throttling", "none seen");
  if ((*idle->throttle_reasons & kSlowedByHeat) == 0) return passed("throttling", "none");
  return wrong("throttling", fmt::format("{:#x}", *idle->throttle_reasons),
               "a GPU is slowed down by heat or by its hardware before the row begins", "see that it is cooled");
}

CheckOutcome check_temperature(const SystemRoot& root, const ChecksSpec& spec, const std::optional<IdleState>& idle) {
  IdleState now = idle.value_or(IdleState{});
  if (!idle) now.temperatures_c = cpu_temperatures(root);
  const std::optional<double> hottest = now.max_temperature_c();
  if (!hottest) return unknown("temperature", "this machine tells no temperature");
  const std::string found = fmt::format("{:.0f} degC", *hottest);
  if (*hottest <= spec.temperature_limit_c) return passed("temperature", found);
  return wrong("temperature", found, fmt::format("it is {} before the row begins", found),
               "a longer limit_s of [cool_down], or better cooling");
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<CheckOutcome> check_machine(const SystemRoot& root, const ChecksSpec& spec,
                                        const std::optional<IdleState>& idle, std::span<const SensorStatus> sensors) {
  std::vector<CheckOutcome> checks = {
      check_sensors(sensors), check_governor(root, spec), check_turbo(root, spec), check_load(root, spec, idle),
      check_swap(root),       check_gpu_processes(idle),  check_throttling(idle),  check_temperature(root, spec, idle)};
  for (CheckOutcome& check : checks) {
    check.required = contains(spec.require, check.name);
    if (check.required && check.state != CheckState::passed) check.state = CheckState::failed;
  }
  return checks;
}

const CheckOutcome* first_failed_requirement(std::span<const CheckOutcome> checks) {
  const auto failed = std::find_if(checks.begin(), checks.end(),
                                   [](const CheckOutcome& check) { return check.state == CheckState::failed; });
  return failed == checks.end() ? nullptr : &*failed;
}

}  // namespace joulemap::experiment
