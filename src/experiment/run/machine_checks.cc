// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/machine_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiment/run/machine_state.h"

namespace joulemap::experiment {
namespace {

// NVML API reference, nvmlClocksEventReasons: thermal and hardware slowdown.
constexpr std::uint64_t kThermalThrottleReasons = 0x8 | 0x20 | 0x40 | 0x80;
constexpr double kMinReportedCoTenantShare = 0.02;

CheckOutcome make_passed_check(std::string_view name, std::string observed_text) {
  return {std::string(name), CheckState::passed, false, std::move(observed_text), "", ""};
}

CheckOutcome make_unknown_check(std::string_view name, std::string reason) {
  return {std::string(name), CheckState::unknown, false, "", std::move(reason), ""};
}

CheckOutcome make_warned_check(std::string_view name, std::string observed_text, std::string message,
                               std::string remedy) {
  return {std::string(name),        CheckState::warned, false,
          std::move(observed_text), std::move(message), std::move(remedy)};
}

CheckOutcome check_sensors(std::span<const SensorStatus> sensors) {
  std::string measured;
  std::string remedy = "run joulemap doctor";
  for (const SensorStatus& sensor : sensors) {
    if (sensor.state == SensorState::measured) measured += (measured.empty() ? "" : ", ") + sensor.name;
    if (sensor.state == SensorState::denied && !sensor.remedy.empty()) remedy = sensor.remedy;
  }
  if (!measured.empty()) return make_passed_check("sensors", measured);
  return make_warned_check("sensors", "none", "no sensor is readable: energies would be estimates or missing",
                           remedy + "; or remove sensors from require in [checks]");
}

CheckOutcome check_governor(const SystemRoot& root, const ChecksSpec& spec) {
  const std::string governor_text = read_governors(root);
  if (governor_text.empty()) return make_unknown_check("governor", "this machine reports no governor");
  if (governor_text == spec.governor) return make_passed_check("governor", governor_text);
  return make_warned_check("governor", governor_text,
                           fmt::format("the governor is {}, not {}", governor_text, spec.governor),
                           "run as root with set = [\"governor\"] in [checks], which sets and restores it");
}

CheckOutcome check_turbo(const SystemRoot& root, const ChecksSpec& spec) {
  const std::optional<bool> on = is_turbo_enabled(root);
  if (!on) return make_unknown_check("turbo", "this machine does not report whether turbo is enabled");
  const std::string turbo_text = *on ? "on" : "off";
  if (!spec.turbo || *spec.turbo == *on) return make_passed_check("turbo", turbo_text);
  return make_warned_check("turbo", turbo_text, fmt::format("turbo is {}", turbo_text),
                           "run as root with set = [\"turbo\"] in [checks], which sets and restores it");
}

CheckOutcome check_cpu_load(const SystemRoot& root, const ChecksSpec& spec, const std::optional<IdleState>& idle) {
  // Without an idle baseline, the load average replaces the measured share. It counts waiting threads, too.
  const bool is_measured = idle && idle->busy_share;
  const std::optional<double> load = is_measured ? idle->busy_share : load_per_cpu(root);
  if (!load) return make_unknown_check("load", "this machine reports no load");
  const std::string load_text = is_measured ? fmt::format("{:.1f} % of all CPUs", 100 * *load)
                                            : fmt::format("load average of {:.2f} per CPU", *load);
  if (*load <= spec.max_load_fraction) return make_passed_check("load", load_text);
  return make_warned_check("load", load_text, (is_measured ? "other processes use " : "the machine has a ") + load_text,
                           "stop other processes (see top)");
}

CheckOutcome check_swap(const SystemRoot& root) {
  const std::optional<std::uint64_t> used_swap_bytes = swap_used_bytes(root);
  if (!used_swap_bytes) return make_unknown_check("swap", "this machine reports no swap");
  const std::string swap_text = fmt::format("{} MiB", *used_swap_bytes >> 20);
  if (*used_swap_bytes == 0) return make_passed_check("swap", swap_text);
  return make_warned_check("swap", swap_text,
                           fmt::format("{} of swap is in use: rows may wait for the disk", swap_text),
                           "as root: swapoff -a && swapon -a, if memory suffices");
}

CheckOutcome check_gpu_processes(const std::optional<IdleState>& idle) {
  if (!idle) return make_unknown_check("gpu_processes", "not checked: no idle baseline was measured");
  if (!idle->co_tenant_gpu_share) return make_passed_check("gpu_processes", "none seen");
  const std::string gpu_share_text = fmt::format("{:.0f} % of a GPU's time", 100 * *idle->co_tenant_gpu_share);
  if (*idle->co_tenant_gpu_share < kMinReportedCoTenantShare) return make_passed_check("gpu_processes", gpu_share_text);
  return make_warned_check("gpu_processes", gpu_share_text, fmt::format("other processes use {}", gpu_share_text),
                           "wait until they end (see nvidia-smi)");
}

CheckOutcome check_throttling(const std::optional<IdleState>& idle) {
  if (!idle) return make_unknown_check("throttling", "not checked: no idle baseline was measured");
  if (!idle->throttle_reasons) return make_passed_check("throttling", "none seen");
  if ((*idle->throttle_reasons & kThermalThrottleReasons) == 0) return make_passed_check("throttling", "none");
  return make_warned_check("throttling", fmt::format("{:#x}", *idle->throttle_reasons),
                           "a GPU is throttled by temperature or hardware before the row starts", "check its cooling");
}

CheckOutcome check_temperature(const SystemRoot& root, const ChecksSpec& spec, const std::optional<IdleState>& idle) {
  IdleState current_state = idle.value_or(IdleState{});
  if (!idle) current_state.temperatures_c = cpu_temperatures(root);
  const std::optional<double> hottest_c = current_state.max_temperature_c();
  if (!hottest_c) return make_unknown_check("temperature", "this machine reports no temperature");
  const std::string temperature_text = fmt::format("{:.0f} degC", *hottest_c);
  if (*hottest_c <= spec.temperature_limit_c) return make_passed_check("temperature", temperature_text);
  return make_warned_check("temperature", temperature_text,
                           fmt::format("the temperature is {} before the row starts", temperature_text),
                           "increase limit_s of [cool_down] or improve the cooling");
}

bool contains_check_name(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<CheckOutcome> check_machine(const SystemRoot& root, const ChecksSpec& spec,
                                        const std::optional<IdleState>& idle, std::span<const SensorStatus> sensors) {
  std::vector<CheckOutcome> checks = {
      check_sensors(sensors), check_governor(root, spec), check_turbo(root, spec), check_cpu_load(root, spec, idle),
      check_swap(root),       check_gpu_processes(idle),  check_throttling(idle),  check_temperature(root, spec, idle)};
  for (CheckOutcome& check : checks) {
    check.is_required = contains_check_name(spec.required_checks, check.check_name);
    if (check.is_required && check.state != CheckState::passed) check.state = CheckState::failed;
  }
  return checks;
}

const CheckOutcome* first_failed_requirement(std::span<const CheckOutcome> checks) {
  const auto failed_check = std::find_if(checks.begin(), checks.end(),
                                         [](const CheckOutcome& check) { return check.state == CheckState::failed; });
  return failed_check == checks.end() ? nullptr : &*failed_check;
}

}  // namespace joulemap::experiment
