// SPDX-License-Identifier: Apache-2.0
//
// CudaDriver: the driver's CUDA library (libcuda), loaded and initialized. It is never unloaded, because it has threads
// of its own. One owner; a context is used by the thread that created it.
//
// JOULEMAP_CUDA names another library, for tests and unusual installations. A program with elevated rights (setuid,
// file capabilities) ignores it, because it would run the user's code with those rights.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "calibration/cuda_api.h"

namespace joulemap::calibration {

// Path of the library to load; empty for none. `requested_library`: the value of JOULEMAP_CUDA. `has_elevated_privileges`:
// whether the kernel has set AT_SECURE. `is_real_root`: false with --sysroot. Pure.
std::string choose_cuda_library(std::string_view requested_library, bool has_elevated_privileges, bool is_real_root);
// The same with the environment of this process.
std::string choose_cuda_library(bool is_real_root);

class CudaDriver {
 public:
  static Result<CudaDriver> load(const std::string& path);

  const CudaApi& api() const { return functions_; }
  // The device with this NVML UUID ("GPU-8f0c...").
  Result<CudaDevice> find_device(std::string_view uuid) const;
  // Converts a result to a Status; the error contains the operation and the driver's message.
  Status check_result(CudaResult result, std::string_view operation) const;

 private:
  explicit CudaDriver(const CudaApi& api) : functions_(api) {}

  CudaApi functions_;
};

// The UUID in NVML's format: "GPU-8f0c...".
std::string nvml_uuid_of(const CudaUuid& uuid);

}  // namespace joulemap::calibration
