// SPDX-License-Identifier: Apache-2.0
//
// The types and functions of NVIDIA's management library (NVML) that we use, declared here so that we build without its
// header and start without its library. Names, layouts and numbers are those of the NVML API reference
// (docs.nvidia.com/deploy/nvml-api), which guarantees their stability; newer functions have a version in their name.
//
// A function that the library lacks is null, and its values are unavailable.
#pragma once

#include <cstdint>

#include "sensors/nvml/nvml_process_api.h"

namespace joulemap::sensors::nvml {

// nvmlReturn_t
enum class NvmlReturn : int {
  success = 0,
  uninitialized = 1,
  invalid_argument = 2,
  not_supported = 3,
  no_permission = 4,
  not_found = 6,
  insufficient_size = 7,
  driver_not_loaded = 9,
  function_not_found = 13,
  gpu_is_lost = 15,
  reset_required = 16,
  lib_rm_version_mismatch = 18,
  gpu_not_found = 28,
  unknown = 999,
};

struct DeviceHandle;
using Device = DeviceHandle*;  // nvmlDevice_t: opaque

// nvmlPciInfo_t as nvmlDeviceGetPciInfo_v3 fills it.
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

// nvmlMemory_t, bytes
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

// nvmlUtilization_t, percent of the last sample period
struct Utilization {
  unsigned gpu;
  unsigned memory;
};

// nvmlValueType_t
enum class ValueType : int {
  double_value = 0,
  unsigned_int = 1,
  unsigned_long = 2,
  unsigned_long_long = 3,
  signed_long_long = 4,
  signed_int = 5,
  unsigned_short = 6,
};

// nvmlFieldValue_t
struct FieldValue {
  unsigned field_id;
  unsigned scope_id;
  long long timestamp_us;  // of the call, not of the measurement (observed with driver 580)
  long long latency_us;
  ValueType value_type;
  NvmlReturn status;
  union {
    double double_value;
    unsigned unsigned_int;
    unsigned long unsigned_long;
    unsigned long long unsigned_long_long;
    long long signed_long_long;
    int signed_int;
    unsigned short unsigned_short;
  } value;
};
static_assert(sizeof(FieldValue) == 40);

// nvmlSample_t; its value is a union of 8 bytes.
struct TimedValue {
  unsigned long long timestamp_us;  // CLOCK_REALTIME
  union {
    unsigned unsigned_int;
    unsigned long long unsigned_long_long;
  } value;
};
static_assert(sizeof(TimedValue) == 16);

inline constexpr unsigned kTotalPowerSamples = 0;    // NVML_TOTAL_POWER_SAMPLES
inline constexpr unsigned kFieldPowerAverage = 185;  // NVML_FI_DEV_POWER_AVERAGE
inline constexpr unsigned kFieldPowerInstant = 186;  // NVML_FI_DEV_POWER_INSTANT
inline constexpr unsigned kPowerScopeGpu = 0;        // NVML_POWER_SCOPE_GPU
inline constexpr unsigned kPowerScopeMemory = 2;     // NVML_POWER_SCOPE_MEMORY
inline constexpr unsigned kClockSm = 1;              // NVML_CLOCK_SM
inline constexpr unsigned kClockMemory = 2;          // NVML_CLOCK_MEM
inline constexpr unsigned kTemperatureGpu = 0;       // NVML_TEMPERATURE_GPU
inline constexpr unsigned kVirtualizationVgpu = 2;   // NVML_GPU_VIRTUALIZATION_MODE_VGPU: a guest with a part of a GPU
inline constexpr unsigned kMigEnabled = 1;           // NVML_DEVICE_MIG_ENABLE
inline constexpr unsigned kTextBufferSize = 96;      // NVML_DEVICE_UUID_V2_BUFFER_SIZE, the longest of our texts

struct NvmlFunctions {
  // Required functions.
  NvmlReturn (*init)() = nullptr;
  NvmlReturn (*shutdown)() = nullptr;
  NvmlReturn (*device_count)(unsigned*) = nullptr;
  NvmlReturn (*device_by_index)(unsigned, Device*) = nullptr;
  NvmlReturn (*device_uuid)(Device, char*, unsigned) = nullptr;
  NvmlReturn (*device_vbios)(Device, char*, unsigned) = nullptr;
  // Optional functions.
  const char* (*error_string)(NvmlReturn) = nullptr;
  NvmlReturn (*driver_version)(char*, unsigned) = nullptr;
  NvmlReturn (*device_name)(Device, char*, unsigned) = nullptr;
  NvmlReturn (*device_pci_info)(Device, PciInfo*) = nullptr;
  NvmlReturn (*device_by_uuid)(const char*, Device*) = nullptr;
  NvmlReturn (*device_of_mig_device)(Device, Device*) = nullptr;
  NvmlReturn (*mig_mode)(Device, unsigned* current, unsigned* pending) = nullptr;
  NvmlReturn (*virtualization_mode)(Device, unsigned*) = nullptr;
  NvmlReturn (*total_energy_mj)(Device, unsigned long long*) = nullptr;
  NvmlReturn (*field_values)(Device, int, FieldValue*) = nullptr;
  NvmlReturn (*samples)(Device, unsigned type, unsigned long long last_seen_us, ValueType*, unsigned* count,
                        TimedValue*) = nullptr;
  NvmlReturn (*power_usage_mw)(Device, unsigned*) = nullptr;
  NvmlReturn (*enforced_power_limit_mw)(Device, unsigned*) = nullptr;
  NvmlReturn (*clock_mhz)(Device, unsigned type, unsigned*) = nullptr;
  NvmlReturn (*temperature_c)(Device, unsigned type, unsigned*) = nullptr;
  NvmlReturn (*utilization)(Device, Utilization*) = nullptr;
  NvmlReturn (*memory_info)(Device, Memory*) = nullptr;
  NvmlReturn (*throttle_reasons)(Device, unsigned long long*) = nullptr;
  NvmlReturn (*compute_processes)(Device, unsigned* count, ProcessInfo*) = nullptr;
  NvmlReturn (*process_utilization)(Device, ProcessUtilization*, unsigned* count,
                                    unsigned long long last_seen_us) = nullptr;
};

}  // namespace joulemap::sensors::nvml
