// SPDX-License-Identifier: Apache-2.0
//
// NvmlLibrary: the loaded and initialized NVML, shared by the sensors of all GPUs and shut down with the last of them.
// NVML guarantees that its functions may be called from any thread.
//
// JOULEMAP_NVML selects another library, for tests and unusual installations. A program with more privileges than its
// user (setuid, file capabilities) refuses it, because it would run that user's code with those privileges.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sensors/nvml/nvml_api.h"

namespace joulemap::sensors::nvml {

// Which library to load. Pure.
struct NvmlLibraryChoice {
  std::string path;              // empty: no library, NVML is off
  bool is_path_refused = false;  // JOULEMAP_NVML names a library, which was refused
};
// `requested_library`: the value of JOULEMAP_NVML, empty where it is not set. `has_elevated_privileges`: whether the
// kernel has set AT_SECURE. `is_real_root`: false with --sysroot.
NvmlLibraryChoice choose_nvml_library(std::string_view requested_library, bool has_elevated_privileges,
                                      bool is_real_root);

// The same with the environment of this process.
NvmlLibraryChoice choose_nvml_library(bool is_real_root);

class NvmlLibrary {
 public:
  // Loads and initializes. Error codes: not_found (no driver), permission, unsupported (driver and library do not
  // match), malformed (not NVML), io.
  static Result<std::shared_ptr<const NvmlLibrary>> load(const std::string& path);

  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;
  ~NvmlLibrary();

  const NvmlFunctions& api() const { return api_; }
  std::string describe_status(NvmlReturn status) const;
  std::string driver_version() const;  // empty when unavailable

 private:
  NvmlLibrary(void* handle, const NvmlFunctions& api) : handle_(handle), api_(api) {}

  void* handle_;  // handle of dlopen
  NvmlFunctions api_;
};

}  // namespace joulemap::sensors::nvml
