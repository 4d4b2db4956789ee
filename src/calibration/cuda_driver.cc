// SPDX-License-Identifier: Apache-2.0
#include "calibration/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/auxv.h>

#include <cstdlib>
#include <initializer_list>

#include "base/scoped_signal_block.h"

namespace joulemap::calibration {
namespace {

constexpr const char* kDefaultCudaLibrary = "libcuda.so.1";

template <class Function>
bool find_cuda_symbol(void* library, Function& function, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (function == nullptr) function = reinterpret_cast<Function>(::dlsym(library, name));
  }
  return function != nullptr;
}

// Returns the first missing function name; empty when all exist.
std::string find_cuda_functions(void* library, CudaApi& api) {
  find_cuda_symbol(library, api.error_string, {"cuGetErrorString"});  // optional
  if (!find_cuda_symbol(library, api.init, {"cuInit"})) return "cuInit";
  if (!find_cuda_symbol(library, api.device_count, {"cuDeviceGetCount"})) return "cuDeviceGetCount";
  if (!find_cuda_symbol(library, api.device_get, {"cuDeviceGet"})) return "cuDeviceGet";
  if (!find_cuda_symbol(library, api.device_uuid, {"cuDeviceGetUuid_v2", "cuDeviceGetUuid"})) return "cuDeviceGetUuid";
  if (!find_cuda_symbol(library, api.device_attribute, {"cuDeviceGetAttribute"})) return "cuDeviceGetAttribute";
  if (!find_cuda_symbol(library, api.context_create, {"cuCtxCreate_v2"})) return "cuCtxCreate_v2";
  if (!find_cuda_symbol(library, api.context_destroy, {"cuCtxDestroy_v2"})) return "cuCtxDestroy_v2";
  if (!find_cuda_symbol(library, api.context_synchronize, {"cuCtxSynchronize"})) return "cuCtxSynchronize";
  if (!find_cuda_symbol(library, api.module_load, {"cuModuleLoadData"})) return "cuModuleLoadData";
  if (!find_cuda_symbol(library, api.module_function, {"cuModuleGetFunction"})) return "cuModuleGetFunction";
  if (!find_cuda_symbol(library, api.launch, {"cuLaunchKernel"})) return "cuLaunchKernel";
  return {};
}

}  // namespace

std::string choose_cuda_library(std::string_view requested_library, bool has_elevated_privileges, bool is_real_root) {
  if (!requested_library.empty() && !has_elevated_privileges) return std::string(requested_library);
  return is_real_root ? kDefaultCudaLibrary : "";
}

std::string choose_cuda_library(bool is_real_root) {
  const char* requested_library = std::getenv("JOULEMAP_CUDA");
  return choose_cuda_library(requested_library != nullptr ? requested_library : "", ::getauxval(AT_SECURE) != 0,
                             is_real_root);
}

Result<CudaDriver> CudaDriver::load(const std::string& path) {
  if (path.empty()) return Error{ErrorCode::not_found, "the CUDA driver is not used with --sysroot", {}};
  // Threads that the library starts must not receive signals meant for joulemap's main thread.
  const ScopedSignalBlock signal_block;
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    const bool is_default_library = path == kDefaultCudaLibrary;
    return Error{ErrorCode::not_found, reason != nullptr ? reason : path,
                 is_default_library ? "in a container: --gpus all with the compute capability" : "unset JOULEMAP_CUDA"};
  }
  CudaApi api;
  const std::string missing_function = find_cuda_functions(library, api);
  if (!missing_function.empty() || api.init == nullptr) {
    return Error{ErrorCode::malformed, fmt::format("{} lacks {}", path, missing_function), {}};
  }
  CudaDriver driver(api);
  if (Status init_status = driver.check_result(api.init(0), "cuInit"); !init_status)
    return std::move(init_status).error();
  return driver;
}

Status CudaDriver::check_result(CudaResult result, std::string_view operation) const {
  if (result == CudaResult::success) return Done{};
  const char* text = nullptr;
  const bool has_message =
      functions_.error_string != nullptr && functions_.error_string(result, &text) == CudaResult::success;
  if (!has_message || text == nullptr) text = "unknown error";
  const ErrorCode code = result == CudaResult::no_device ? ErrorCode::not_found : ErrorCode::io;
  return Error{code, fmt::format("{}: {} (CUDA error {})", operation, text, static_cast<int>(result)), {}};
}

Result<CudaDevice> CudaDriver::find_device(std::string_view uuid) const {
  int count = 0;
  if (Status status = check_result(functions_.device_count(&count), "cuDeviceGetCount"); !status)
    return std::move(status).error();
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CudaDevice device = 0;
    if (Status status = check_result(functions_.device_get(&device, ordinal), "cuDeviceGet"); !status)
      return std::move(status).error();
    CudaUuid cuda_uuid{};
    if (Status status = check_result(functions_.device_uuid(&cuda_uuid, device), "cuDeviceGetUuid"); !status)
      return std::move(status).error();
    if (nvml_uuid_of(cuda_uuid) == uuid) return device;
  }
  return Error{ErrorCode::not_found, fmt::format("none of the {} CUDA devices is {}", count, uuid),
               "add it to CUDA_VISIBLE_DEVICES; a GPU with MIG partitions cannot be loaded as a whole"};
}

std::string nvml_uuid_of(const CudaUuid& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    const bool is_uuid_group_start = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", is_uuid_group_start ? "-" : "", uuid.bytes[i]);
  }
  return text;
}

}  // namespace joulemap::calibration
