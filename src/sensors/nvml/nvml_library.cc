// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/nvml_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/auxv.h>

#include <array>
#include <cstdlib>

#include "base/fork_gate.h"
#include "base/scoped_signal_block.h"

namespace joulemap::sensors::nvml {
namespace {

constexpr const char* kDefaultNvmlLibrary = "libnvidia-ml.so.1";

// Looks a function up by the first of its names that the library has. Newest name first: older drivers lack it.
template <class Function>
void find_nvml_symbol(void* handle, Function& function, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (function == nullptr) function = reinterpret_cast<Function>(::dlsym(handle, name));
  }
}

NvmlFunctions find_nvml_functions(void* handle) {
  NvmlFunctions api;
  find_nvml_symbol(handle, api.init, {"nvmlInit_v2"});
  find_nvml_symbol(handle, api.shutdown, {"nvmlShutdown"});
  find_nvml_symbol(handle, api.device_count, {"nvmlDeviceGetCount_v2"});
  find_nvml_symbol(handle, api.device_by_index, {"nvmlDeviceGetHandleByIndex_v2"});
  find_nvml_symbol(handle, api.device_uuid, {"nvmlDeviceGetUUID"});
  find_nvml_symbol(handle, api.device_vbios, {"nvmlDeviceGetVbiosVersion"});
  find_nvml_symbol(handle, api.error_string, {"nvmlErrorString"});
  find_nvml_symbol(handle, api.driver_version, {"nvmlSystemGetDriverVersion"});
  find_nvml_symbol(handle, api.device_name, {"nvmlDeviceGetName"});
  find_nvml_symbol(handle, api.device_pci_info, {"nvmlDeviceGetPciInfo_v3"});
  find_nvml_symbol(handle, api.device_by_uuid, {"nvmlDeviceGetHandleByUUID"});
  find_nvml_symbol(handle, api.device_of_mig_device, {"nvmlDeviceGetDeviceHandleFromMigDeviceHandle"});
  find_nvml_symbol(handle, api.mig_mode, {"nvmlDeviceGetMigMode"});
  find_nvml_symbol(handle, api.virtualization_mode, {"nvmlDeviceGetVirtualizationMode"});
  find_nvml_symbol(handle, api.total_energy_mj, {"nvmlDeviceGetTotalEnergyConsumption"});
  find_nvml_symbol(handle, api.field_values, {"nvmlDeviceGetFieldValues"});
  find_nvml_symbol(handle, api.samples, {"nvmlDeviceGetSamples"});
  find_nvml_symbol(handle, api.power_usage_mw, {"nvmlDeviceGetPowerUsage"});
  find_nvml_symbol(handle, api.enforced_power_limit_mw, {"nvmlDeviceGetEnforcedPowerLimit"});
  find_nvml_symbol(handle, api.clock_mhz, {"nvmlDeviceGetClockInfo"});
  find_nvml_symbol(handle, api.temperature_c, {"nvmlDeviceGetTemperature"});
  find_nvml_symbol(handle, api.utilization, {"nvmlDeviceGetUtilizationRates"});
  find_nvml_symbol(handle, api.memory_info, {"nvmlDeviceGetMemoryInfo"});
  find_nvml_symbol(handle, api.throttle_reasons,
                   {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  find_nvml_symbol(handle, api.compute_processes,
                   {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  find_nvml_symbol(handle, api.process_utilization, {"nvmlDeviceGetProcessUtilization"});
  return api;
}

bool has_required_functions(const NvmlFunctions& api) {
  return api.init != nullptr && api.shutdown != nullptr && api.device_count != nullptr &&
         api.device_by_index != nullptr && api.device_uuid != nullptr;
}

std::string nvml_status_text(const NvmlFunctions& api, NvmlReturn status) {
  const char* text = api.error_string != nullptr ? api.error_string(status) : nullptr;
  if (text == nullptr) return fmt::format("NVML error {}", static_cast<int>(status));
  return fmt::format("{} (NVML error {})", text, static_cast<int>(status));
}

ErrorCode error_code_of_status(NvmlReturn status) {
  switch (status) {
    case NvmlReturn::driver_not_loaded:
      return ErrorCode::not_found;
    case NvmlReturn::no_permission:
      return ErrorCode::permission;
    case NvmlReturn::lib_rm_version_mismatch:
      return ErrorCode::unsupported;
    default:
      return ErrorCode::io;
  }
}

std::string remedy_for_load_failure(NvmlReturn status) {
  switch (status) {
    case NvmlReturn::driver_not_loaded:
      return "sudo modprobe nvidia";
    case NvmlReturn::no_permission:
      return "ls -l /dev/nvidiactl /dev/nvidia*\n(this user needs read and write access)";
    case NvmlReturn::lib_rm_version_mismatch:
      return "the driver was updated but its kernel module was not: reboot, or reload the nvidia modules";
    default:
      return "nvidia-smi\n(shows the same error, with NVIDIA's advice)";
  }
}

}  // namespace

NvmlLibraryChoice choose_nvml_library(std::string_view requested_library, bool has_elevated_privileges,
                                      bool is_real_root) {
  const std::string default_library = is_real_root ? kDefaultNvmlLibrary : "";
  if (requested_library.empty()) return {default_library, false};
  if (has_elevated_privileges) return {default_library, true};
  return {std::string(requested_library), false};
}

NvmlLibraryChoice choose_nvml_library(bool is_real_root) {
  const char* requested_library = std::getenv("JOULEMAP_NVML");
  return choose_nvml_library(requested_library != nullptr ? requested_library : "", ::getauxval(AT_SECURE) != 0,
                             is_real_root);
}

Result<std::shared_ptr<const NvmlLibrary>> NvmlLibrary::load(const std::string& path) {
  // Threads that the library starts must not receive signals meant for the process that loads it.
  const ScopedSignalBlock signal_block;
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    if (path == kDefaultNvmlLibrary) {
      return Error{ErrorCode::not_found, fmt::format("{} not found: no NVIDIA driver is installed", path), ""};
    }
    const char* reason = ::dlerror();
    return Error{ErrorCode::unsupported, fmt::format("JOULEMAP_NVML: {}", reason != nullptr ? reason : path),
                 "unset JOULEMAP_NVML"};
  }
  const NvmlFunctions api = find_nvml_functions(handle);
  if (!has_required_functions(api)) {
    ::dlclose(handle);
    return Error{ErrorCode::malformed, fmt::format("{} lacks required NVML functions", path), ""};
  }
  if (const NvmlReturn status = api.init(); status != NvmlReturn::success) {
    Error error{error_code_of_status(status), fmt::format("nvmlInit: {}", nvml_status_text(api, status)),
                remedy_for_load_failure(status)};
    ::dlclose(handle);
    return error;
  }
  return std::shared_ptr<const NvmlLibrary>(new NvmlLibrary(handle, api));
}

NvmlLibrary::~NvmlLibrary() {
  const ForkGate::ScopedGateEntry inside(nvml_fork_gate);
  api_.shutdown();
  ::dlclose(handle_);
}

std::string NvmlLibrary::describe_status(NvmlReturn status) const { return nvml_status_text(api_, status); }

std::string NvmlLibrary::driver_version() const {
  std::array<char, kTextBufferSize> text{};
  if (api_.driver_version == nullptr || api_.driver_version(text.data(), kTextBufferSize) != NvmlReturn::success)
    return {};
  text.back() = '\0';
  return text.data();
}

}  // namespace joulemap::sensors::nvml
