// SPDX-License-Identifier: Apache-2.0
//
// NvmlDevice: one GPU in NVML, and the table of its metrics. A value type: cheap to copy, keeps the library loaded.
// Reads return NVML's own integers (mJ, mW, MHz, ...). Besides what NVML does, they neither allocate nor lock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/channel.h"
#include "model/reading.h"
#include "sensors/nvml/nvml_library.h"

namespace joulemap::sensors::nvml {

// Metrics of a GPU, in the order of its channels. The counter is slow to read, the powers share one quick call, the
// rest changes slowly.
enum class GpuMetric : std::uint8_t {
  energy,
  power_instant,
  power_average,
  power_usage,  // average power from an older function, where the field of power_average is not supported
  memory_power,
  power_limit,
  sm_clock,
  memory_clock,
  temperature,
  gpu_utilization,
  memory_utilization,
  memory_used,
  throttle_reasons,
  other_processes_utilization,  // of processes that are not measured (other_processes.h)
  power_history,                // many values in one call
};
inline constexpr std::size_t kGpuMetricCount = 15;

constexpr bool is_power_metric(GpuMetric metric) {
  return metric >= GpuMetric::power_instant && metric <= GpuMetric::memory_power;
}

struct RawReadResult {
  NvmlReturn status = NvmlReturn::function_not_found;
  std::uint64_t raw = 0;  // value in NVML's unit; meaningful only on success
};

class NvmlDevice {
 public:
  NvmlDevice(std::shared_ptr<const NvmlLibrary> library, Device handle, unsigned index)
      : library_(std::move(library)), handle_(handle), index_(index) {}

  RawReadResult read(GpuMetric metric) const noexcept;
  // Reads all powers of the list into `out`, which has one element for each.
  // One NVML call reads all powers that are NVML fields.
  void read_powers(std::span<const GpuMetric> metrics, std::span<RawReadResult> out) const noexcept;

  // The power values that the driver stored since that time, oldest first, limited to the size of `out`.
  struct HistoryReadResult {
    NvmlReturn status = NvmlReturn::function_not_found;
    unsigned count = 0;
  };
  HistoryReadResult read_power_history(unsigned long long since_us, std::span<TimedValue> out) const noexcept;

  // read_processes: processes with a context on the GPU. read_process_utilization: processes that had a kernel running
  // since a time. Both limited to the size of `out`.
  struct ProcessReadResult {
    NvmlReturn status = NvmlReturn::function_not_found;
    unsigned count = 0;
  };
  ProcessReadResult read_processes(std::span<ProcessInfo> out) const noexcept;
  ProcessReadResult read_process_utilization(unsigned long long since_us,
                                             std::span<ProcessUtilization> out) const noexcept;

  const NvmlLibrary& library() const { return *library_; }
  Device handle() const { return handle_; }
  unsigned index() const { return index_; }
  std::string name() const;
  std::string uuid() const;
  std::string driver() const;  // versions of driver and firmware, for which a calibration is valid
  std::string pci_bus_id() const;
  bool is_mig_enabled() const;
  bool is_vgpu() const;  // a vGPU guest: NVML reports a part of a GPU

  // Describes the metric as a channel: name, unit, kind and update period.
  Channel make_metric_channel(GpuMetric metric) const;

 private:
  std::shared_ptr<const NvmlLibrary> library_;
  Device handle_;
  unsigned index_;
};

// The reading code of a failed call.
ReadCode to_read_code(NvmlReturn status);

// False when this GPU, driver or library lacks the function; true on success and on other failures.
bool is_supported(NvmlReturn status);

}  // namespace joulemap::sensors::nvml
