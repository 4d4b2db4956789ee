// SPDX-License-Identifier: Apache-2.0
//
// A fake NVML that follows the script named by JOULEMAP_FAKE_NVML (script.h). JOULEMAP_NVML=<this library> makes
// joulemap use it. Built twice: complete, and like an old driver (FAKE_NVML_OLD), without the newer functions.
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "base/clock.h"
#include "fake_cuda/load_log.h"
#include "fake_nvml/clients.h"
#include "fake_nvml/script.h"
#include "sensors/nvml/nvml_api.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace joulemap::sensors::nvml {
struct DeviceHandle {};
}  // namespace joulemap::sensors::nvml

namespace {

using namespace joulemap;
using namespace joulemap::fake_nvml;
using namespace joulemap::sensors::nvml;

// Global state behind a C interface, as in NVML.
struct State {
  Script script;
  std::int64_t origin_ns = 0;
  std::vector<DeviceHandle> handles;                           // one for each device; callers hold their addresses
  std::vector<DeviceHandle> mig_handles;                       // the same for MIG instances
  std::vector<std::unique_ptr<fake_cuda::LoadLog>> load_logs;  // for devices with a `load` statement
};
State& state = *new State;  // never destroyed: threads read it until the process has ended

// The real library has locks of its own: a child forked meanwhile inherits them locked, even if it initializes NVML
// again.
std::array<std::mutex, 64> device_locks;
std::atomic<bool> has_signal_thread{false};

double now_s() { return seconds(monotonic_ns() - state.origin_ns); }

// Power of a device that follows the fake CUDA driver.
PowerCurve curve_of_channel(const ScriptedDevice::ScriptedLoad& load, const fake_cuda::LoadLog& log) {
  using fake_cuda::LoadState;
  PowerCurve curve;
  curve.points = {{0, load.idle_w}};
  const std::size_t events = log.size();
  for (std::size_t i = 0; i < events; ++i) {
    const fake_cuda::LoadEvent event = log.at(i);
    const double from_s = seconds(event.time_ns - state.origin_ns);
    if (event.load_state == LoadState::nothing) {
      if (load.sleep_s > 0) curve.points.push_back({from_s, load.sleep_w});
      curve.points.push_back({from_s + load.sleep_s, load.idle_w});
    } else {
      curve.points.push_back({from_s, event.load_state == LoadState::kernel ? load.loaded_w : load.context_w});
    }
  }
  return curve;
}

ScriptedDevice copy_current_device(Device handle) {
  const auto index = static_cast<std::size_t>(handle - state.handles.data());
  ScriptedDevice device = state.script.devices[index];
  if (device.load) device.power = curve_of_channel(*device.load, *state.load_logs[index]);
  return device;
}

NvmlReturn check_device_status(Device handle, const char* feature_name) {
  const ScriptedDevice& device = state.script.devices[static_cast<std::size_t>(handle - state.handles.data())];
  if (device.lost_at_s && now_s() >= *device.lost_at_s) return NvmlReturn::gpu_is_lost;
  if (!device.lost_trigger_path.empty() && ::access(device.lost_trigger_path.c_str(), F_OK) == 0)
    return NvmlReturn::gpu_is_lost;
  if (device.fail_at_s && now_s() >= *device.fail_at_s) return NvmlReturn::unknown;
  if (device.unsupported.count(feature_name) != 0) return NvmlReturn::not_supported;
  if (device.denied.count(feature_name) != 0) return NvmlReturn::no_permission;
  return NvmlReturn::success;
}

NvmlReturn copy_text(const std::string& text, char* out, unsigned size) {
  std::snprintf(out, size, "%s", text.c_str());
  return NvmlReturn::success;
}

template <class Value, class Compute>
NvmlReturn return_value(Device handle, const char* feature_name, Value* out, Compute compute) {
  const NvmlReturn status = check_device_status(handle, feature_name);
  if (status == NvmlReturn::success) *out = static_cast<Value>(compute(copy_current_device(handle)));
  return status;
}

}  // namespace

EXPORTED NvmlReturn nvmlInit_v2() {
  // The real library has a thread that takes the program's signals, including SIGCHLD, unless the caller blocks them.
  if (!has_signal_thread.exchange(true)) {
    std::thread([] {
      while (true) ::pause();
    }).detach();
  }
  const char* path = std::getenv("JOULEMAP_FAKE_NVML");
  std::ifstream file(path != nullptr ? path : "");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::optional<Script> script = parse_script(text);
  if (!file.is_open() || !script) {
    std::fprintf(stderr, "fake NVML: cannot read the script %s\n", path != nullptr ? path : "(JOULEMAP_FAKE_NVML)");
    std::abort();
  }
  state.script = *script;
  state.origin_ns = script->origin_s ? static_cast<std::int64_t>(*script->origin_s * 1e9) : monotonic_ns();
  state.handles.resize(script->devices.size());
  state.mig_handles.resize(script->devices.size());
  state.load_logs.clear();
  for (const ScriptedDevice& device : script->devices) {
    state.load_logs.push_back(device.load ? std::make_unique<fake_cuda::LoadLog>(device.load->log_path) : nullptr);
  }
  return static_cast<NvmlReturn>(script->init_error);
}

EXPORTED NvmlReturn nvmlShutdown() { return NvmlReturn::success; }

EXPORTED NvmlReturn nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(state.handles.size());
  return NvmlReturn::success;
}

EXPORTED NvmlReturn nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  if (index >= state.handles.size()) return NvmlReturn::invalid_argument;
  *device = &state.handles[index];
  return static_cast<NvmlReturn>(state.script.devices[index].absent);
}

EXPORTED NvmlReturn nvmlDeviceGetUUID(Device device, char* text, unsigned size) {
  return copy_text(copy_current_device(device).uuid, text, size);
}

EXPORTED NvmlReturn nvmlDeviceGetName(Device device, char* text, unsigned size) {
  return copy_text(copy_current_device(device).name, text, size);
}

EXPORTED NvmlReturn nvmlDeviceGetPowerUsage(Device device, unsigned* power_mw) {
  return return_value(device, "usage", power_mw, [](const ScriptedDevice& d) { return d.average_mw(now_s()); });
}

#ifndef FAKE_NVML_OLD

EXPORTED const char* nvmlErrorString(NvmlReturn status) {
  switch (status) {
    case NvmlReturn::gpu_is_lost:
      return "GPU is lost";
    case NvmlReturn::no_permission:
      return "Insufficient Permissions";
    case NvmlReturn::driver_not_loaded:
      return "Driver Not Loaded";
    default:
      return "Unknown Error";
  }
}

EXPORTED NvmlReturn nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return copy_text(state.script.driver, text, size);
}

EXPORTED NvmlReturn nvmlDeviceGetPciInfo_v3(Device device, PciInfo* info) {
  *info = {};
  return copy_text(copy_current_device(device).pci_bus_id, info->bus_id, sizeof(info->bus_id));
}

EXPORTED NvmlReturn nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  for (std::size_t i = 0; i < state.handles.size(); ++i) {
    if (state.script.devices[i].uuid == uuid) {
      *device = &state.handles[i];
      return NvmlReturn::success;
    }
    if (!state.script.devices[i].mig_uuid.empty() && state.script.devices[i].mig_uuid == uuid) {
      *device = &state.mig_handles[i];
      return NvmlReturn::success;
    }
  }
  return NvmlReturn::not_found;
}

EXPORTED NvmlReturn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device instance, Device* device) {
  for (std::size_t i = 0; i < state.mig_handles.size(); ++i) {
    if (instance != &state.mig_handles[i]) continue;
    *device = &state.handles[i];
    return NvmlReturn::success;
  }
  return NvmlReturn::invalid_argument;
}

EXPORTED NvmlReturn nvmlDeviceGetMigMode(Device device, unsigned* current, unsigned* pending) {
  *current = *pending = copy_current_device(device).mig_uuid.empty() ? 0 : kMigEnabled;
  return NvmlReturn::success;
}

EXPORTED NvmlReturn nvmlDeviceGetVirtualizationMode(Device device, unsigned* mode) {
  *mode = copy_current_device(device).virtualization_mode;
  return NvmlReturn::success;
}

namespace {

constexpr double kLatchDelay_s = 0.001;  // as on an H200: the value is that of the start of the call

void busy_wait(double duration_s) {
  const std::int64_t end_ns = monotonic_ns() + static_cast<std::int64_t>(duration_s * 1e9);
  while (monotonic_ns() < end_ns) {
  }
}

}  // namespace

EXPORTED NvmlReturn nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long* energy_mj) {
  static thread_local std::minstd_rand random(1);
  const std::lock_guard hold(
      device_locks[static_cast<std::size_t>(device - state.handles.data()) % device_locks.size()]);
  const ScriptedDevice scripted_device = copy_current_device(device);
  const double latch_wait_s =
      std::uniform_real_distribution<double>(0, std::min(scripted_device.counter_spin_s, kLatchDelay_s))(random);
  busy_wait(latch_wait_s);
  const double latch_time_s = now_s();
  busy_wait(scripted_device.counter_spin_s - latch_wait_s);
  return return_value(device, "energy", energy_mj, [&](const ScriptedDevice& d) { return d.counter_mj(latch_time_s); });
}

EXPORTED NvmlReturn nvmlDeviceGetFieldValues(Device device, int count, FieldValue* values) {
  for (int i = 0; i < count; ++i) {
    FieldValue& field = values[i];
    const bool memory = field.scope_id == kPowerScopeMemory;
    const bool instant = field.field_id == kFieldPowerInstant;
    field.value_type = ValueType::unsigned_int;
    field.timestamp_us = unix_ns() / 1000;
    if (memory && instant) {
      field.status = NvmlReturn::not_supported;
      continue;
    }
    const char* feature_name = memory ? "memory_power" : instant ? "instant" : "average";
    field.status = return_value(device, feature_name, &field.value.unsigned_int, [&](const ScriptedDevice& d) {
      return instant ? d.instant_mw(now_s()) : d.average_mw(now_s()) / (memory ? 4 : 1);
    });
  }
  return NvmlReturn::success;
}

// Values every 20 ms since the origin, for the last 2.4 s.
EXPORTED NvmlReturn nvmlDeviceGetSamples(Device device, unsigned type, unsigned long long last_seen_us,
                                         ValueType* value_type, unsigned* count, TimedValue* values) {
  constexpr double kHistoryPeriod_s = 0.02;
  constexpr int kHistorySize = 120;
  const NvmlReturn status = check_device_status(device, "history");
  if (status != NvmlReturn::success) return status;
  if (type != kTotalPowerSamples) return NvmlReturn::not_supported;
  *value_type = ValueType::unsigned_int;
  const ScriptedDevice scripted_device = copy_current_device(device);
  const std::int64_t unix_origin_ns = unix_ns() - monotonic_ns() + state.origin_ns;
  const auto newest_index = static_cast<std::int64_t>(now_s() / kHistoryPeriod_s);
  unsigned value_count = 0;
  for (std::int64_t i = std::max<std::int64_t>(newest_index - kHistorySize + 1, 0);
       i <= newest_index && value_count < *count; ++i) {
    const double sample_time_s = static_cast<double>(i) * kHistoryPeriod_s;
    const auto sample_time_us =
        static_cast<unsigned long long>((unix_origin_ns + static_cast<std::int64_t>(sample_time_s * 1e9)) / 1000);
    if (sample_time_us <= last_seen_us) continue;
    values[value_count].timestamp_us = sample_time_us;
    values[value_count].value.unsigned_int = static_cast<unsigned>(scripted_device.history_mw(sample_time_s));
    ++value_count;
  }
  *count = value_count;
  return value_count > 0 ? NvmlReturn::success : NvmlReturn::not_found;
}

EXPORTED NvmlReturn nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* limit_mw) {
  return return_value(device, "limit", limit_mw, [](const ScriptedDevice&) { return 700'000; });
}

EXPORTED NvmlReturn nvmlDeviceGetClockInfo(Device device, unsigned type, unsigned* clock_mhz) {
  return return_value(device, "clock", clock_mhz,
                      [&](const ScriptedDevice&) { return type == kClockSm ? 1980 : 3201; });
}

EXPORTED NvmlReturn nvmlDeviceGetTemperature(Device device, unsigned, unsigned* temperature_c) {
  return return_value(device, "temperature", temperature_c, [](const ScriptedDevice&) { return 41; });
}

EXPORTED NvmlReturn nvmlDeviceGetUtilizationRates(Device device, Utilization* rates) {
  return return_value(device, "utilization", rates, [](const ScriptedDevice& d) {
    return d.load ? Utilization{0, 0} : Utilization{87, 12};
  });
}

EXPORTED NvmlReturn nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  return return_value(device, "memory", memory, [](const ScriptedDevice&) { return Memory{150'000, 100'000, 50'000}; });
}

EXPORTED NvmlReturn nvmlDeviceGetCurrentClocksEventReasons(Device device, unsigned long long* reasons) {
  return return_value(device, "throttle", reasons, [](const ScriptedDevice& d) { return d.throttle_reasons; });
}

namespace {

std::vector<ScriptedDevice::Process> list_running_processes(const ScriptedDevice& device) {
  std::vector<ScriptedDevice::Process> processes = device.processes;
  if (!device.clients_folder.empty()) add_clients(device.clients_folder, processes);
  std::erase_if(processes, [](const ScriptedDevice::Process& process) { return process.from_s > now_s(); });
  return processes;
}

}  // namespace

EXPORTED NvmlReturn nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, ProcessInfo* processes) {
  const NvmlReturn status = check_device_status(device, "processes");
  if (status != NvmlReturn::success) return status;
  const unsigned capacity = *count;
  *count = 0;
  const ScriptedDevice scripted_device = copy_current_device(device);
  if (!scripted_device.clients_folder.empty())
    std::ofstream(scripted_device.clients_folder + "/reads", std::ios::app) << '.';
  for (const ScriptedDevice::Process& process : list_running_processes(scripted_device)) {
    if (!process.is_listed) continue;
    if (*count < capacity) processes[*count] = {process.pid, 1 << 20, ~0U, ~0U};
    ++*count;
  }
  return *count > capacity ? NvmlReturn::insufficient_size : NvmlReturn::success;
}

// One sample for each process with a running kernel, 0.4 s old: less than the shortest lookback of any caller.
EXPORTED NvmlReturn nvmlDeviceGetProcessUtilization(Device device, ProcessUtilization* utilizations, unsigned* count,
                                                    unsigned long long last_seen_us) {
  const NvmlReturn status = check_device_status(device, "process_utilization");
  if (status != NvmlReturn::success) return status;
  const auto sample_time_us = static_cast<unsigned long long>(unix_ns() / 1000 - 400'000);
  const unsigned capacity = utilizations == nullptr ? 0 : *count;
  *count = 0;
  for (const ScriptedDevice::Process& process : list_running_processes(copy_current_device(device))) {
    if (process.sm_percent == 0 || sample_time_us <= last_seen_us) continue;
    if (*count < capacity) utilizations[*count] = {process.pid, sample_time_us, process.sm_percent, 0, 0, 0};
    ++*count;
  }
  if (*count == 0) return NvmlReturn::not_found;
  return *count > capacity ? NvmlReturn::insufficient_size : NvmlReturn::success;
}

#endif  // FAKE_NVML_OLD
