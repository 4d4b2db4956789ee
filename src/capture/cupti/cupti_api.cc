// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/cupti_api.h"

#include <dlfcn.h>

#include <cstdio>
#include <utility>

#include "base/scoped_signal_block.h"

namespace joulemap::capture::cupti {
namespace {

template <class Function>
void find_symbol(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
}

CuptiFunctions find_cupti_functions(void* library) {
  CuptiFunctions functions;
  find_symbol(library, functions.get_version, "cuptiGetVersion");
  find_symbol(library, functions.register_buffers, "cuptiActivityRegisterCallbacks");
  find_symbol(library, functions.enable_records, "cuptiActivityEnable");
  find_symbol(library, functions.disable_records, "cuptiActivityDisable");
  find_symbol(library, functions.flush_buffers, "cuptiActivityFlushAll");
  find_symbol(library, functions.get_next_record, "cuptiActivityGetNextRecord");
  find_symbol(library, functions.get_timestamp, "cuptiGetTimestamp");
  find_symbol(library, functions.subscribe, "cuptiSubscribe");
  find_symbol(library, functions.unsubscribe, "cuptiUnsubscribe");
  find_symbol(library, functions.enable_callback, "cuptiEnableCallback");
  find_symbol(library, functions.get_callback_name, "cuptiGetCallbackName");
  find_symbol(library, functions.register_clock, "cuptiActivityRegisterTimestampCallback");
  find_symbol(library, functions.get_dropped_records, "cuptiActivityGetNumDroppedRecords");
  find_symbol(library, functions.get_graph_node_id, "cuptiGetGraphNodeId");
  find_symbol(library, functions.get_graph_id, "cuptiGetGraphId");
  find_symbol(library, functions.get_result_string, "cuptiGetResultString");
  find_symbol(library, functions.finalize, "cuptiFinalize");
  return functions;
}

DriverFunctions find_driver_functions(void* cupti) {
  void* library = find_loaded_driver();
  if (library == nullptr) library = cupti;  // the fake library of the tests contains both
  DriverFunctions driver;
  find_symbol(library, driver.get_version, "cuDriverGetVersion");
  find_symbol(library, driver.get_device, "cuDeviceGet");
  // For a MIG instance, the older function returns the whole GPU, whose energy the sensors measure.
  find_symbol(library, driver.get_device_uuid, "cuDeviceGetUuid");
  if (driver.get_device_uuid == nullptr) find_symbol(library, driver.get_device_uuid, "cuDeviceGetUuid_v2");
  return driver;
}

bool has_record_functions(const CuptiFunctions& functions) {
  return functions.get_version != nullptr && functions.register_buffers != nullptr &&
         functions.enable_records != nullptr && functions.disable_records != nullptr &&
         functions.flush_buffers != nullptr && functions.get_next_record != nullptr &&
         functions.get_timestamp != nullptr;
}

}  // namespace

// With CUPTI before CUDA 12.6, programs that use CUDA graphs crash when CUPTI is reopened.
bool CuptiApi::can_detach() const {
  constexpr std::uint32_t kCuda126 = 24;
  return functions_.finalize != nullptr && version_ >= kCuda126;
}

bool CuptiApi::can_trace_launches() const {
  return functions_.subscribe != nullptr && functions_.unsubscribe != nullptr &&
         functions_.enable_callback != nullptr && functions_.get_callback_name != nullptr;
}

Result<CuptiApi> CuptiApi::open(const CuptiSearchInputs& search) {
  // An error about an unusable library is more helpful than one about twenty that do not exist.
  Error open_error{
      ErrorCode::not_found, "libcupti not found: kernels are not recorded",
      "set JOULEMAP_CUPTI=/path/to/libcupti.so.12, or install it: pip install nvidia-cuda-cupti-cu12 (CUDA 12) "
      "or nvidia-cuda-cupti (CUDA 13)"};
  for (const std::string& path : cupti_candidates(search)) {
    Result<CuptiApi> api = open_library(path, search.driver_major);
    if (api) return api;
    if (api.error().code != ErrorCode::not_found || !search.requested_path.empty()) open_error = std::move(api).error();
  }
  return open_error;
}

Result<CuptiApi> CuptiApi::open_library(const std::string& path, int driver_major) {
  // Threads that the library starts must not take this program's signals.
  const ScopedSignalBlock signal_block;
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return Error{ErrorCode::not_found, reason != nullptr ? reason : path, ""};
  }
  CuptiApi api;
  api.library_path_ = path;
  api.functions_ = find_cupti_functions(library);
  api.driver_ = find_driver_functions(library);
  if (!has_record_functions(api.functions_)) {
    return Error{ErrorCode::unsupported, path + " lacks required CUPTI functions", ""};
  }
  Status version = api.read_version(driver_major);
  if (!version) return std::move(version).error();
  api.diagnose_missing_functions();
  return api;
}

Status CuptiApi::read_version(int driver_major) {
  const CuptiResult outcome = functions_.get_version(&version_);
  if (outcome != CuptiResult::success) {
    return Error{ErrorCode::io, library_path_ + " does not report its version: " + result_text(outcome), ""};
  }
  const std::optional<ChosenRecordLayout> chosen = find_record_layout(version_);
  if (!chosen) {
    return Error{ErrorCode::unsupported, library_path_ + " is older than CUDA 11: its records are not supported", ""};
  }
  const int major = cuda_major_of_cupti(version_);
  if (driver_major != 0 && major > driver_major) {
    return Error{ErrorCode::unsupported,
                 library_path_ + " is for " + cupti_version_text(version_) + ", but the driver supports only CUDA " +
                     std::to_string(driver_major),
                 "update the NVIDIA driver, or install the libraries of CUDA " + std::to_string(driver_major)};
  }
  record_layout_ = chosen->layout;
  if (chosen->layout_match == LayoutMatch::newer_than_known) {
    diagnostics_.add({"cupti_newer", 1,
                      library_path_ + " (" + cupti_version_text(version_) +
                          ") is newer than this joulemap supports; its records are read as those of CUDA 13.0",
                      "update joulemap"});
  }
  return Done{};
}

void CuptiApi::diagnose_missing_functions() {
  if (!can_trace_launches()) {
    diagnostics_.add(
        {"kernels_without_places", 1, library_path_ + " has no callbacks: kernels cannot be assigned to layers", ""});
  }
  if (!can_set_clock()) {
    diagnostics_.add(
        {"cupti_clock", 1,
         library_path_ + " (" + cupti_version_text(version_) +
             ") uses its own clock: kernel times are converted with paired clock readings, to a few microseconds",
         "CUDA 11.6 or newer can use joulemap's clock"});
  }
  if (can_trace_launches() && !can_trace_graphs()) {
    diagnostics_.add(
        {"graphs_without_places", 1,
         library_path_ +
             " does not identify the nodes of CUDA graphs: their kernels belong to the scope that launched the graph",
         "CUDA 11.1 or newer identifies them"});
  }
}

std::optional<std::string> CuptiApi::device_uuid(std::uint32_t ordinal) const {
  if (driver_.get_device == nullptr || driver_.get_device_uuid == nullptr) return std::nullopt;
  int handle = 0;
  DriverUuid uuid{};
  if (driver_.get_device(&handle, static_cast<int>(ordinal)) != 0) return std::nullopt;
  if (driver_.get_device_uuid(&uuid, handle) != 0) return std::nullopt;
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", uuid.bytes[i]);
    text += digits;
  }
  return text;
}

std::string CuptiApi::result_text(CuptiResult outcome) const {
  const char* text = nullptr;
  if (functions_.get_result_string != nullptr) functions_.get_result_string(outcome, &text);
  const std::string number = "CUPTI error " + std::to_string(static_cast<int>(outcome));
  return text != nullptr ? std::string(text) + " (" + number + ")" : number;
}

}  // namespace joulemap::capture::cupti
