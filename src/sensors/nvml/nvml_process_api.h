// SPDX-License-Identifier: Apache-2.0
//
// NVML's structures for the processes on a GPU, with their own layouts (see nvml_api.h).
#pragma once

namespace joulemap::sensors::nvml {

// nvmlProcessInfo_v2_t, as nvmlDeviceGetComputeRunningProcesses_v3 fills it (and _v2 before it).
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory;  // bytes
  unsigned gpu_instance;
  unsigned compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

// nvmlProcessUtilizationSample_t; utilizations in percent
struct ProcessUtilization {
  unsigned pid;
  unsigned long long timestamp_us;  // CLOCK_REALTIME
  unsigned sm;                      // percent of time in which a kernel of the process ran
  unsigned memory;
  unsigned encoder;
  unsigned decoder;
};
static_assert(sizeof(ProcessUtilization) == 32);

}  // namespace joulemap::sensors::nvml
