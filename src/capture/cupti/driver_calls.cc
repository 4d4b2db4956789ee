// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/driver_calls.h"

namespace joulemap::capture::cupti {
namespace {

constexpr std::uint32_t kMaxCallbackIds = 10'000;  // CUDA 13.0 has 807; ids have no holes

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  for (const std::string_view prefix : prefixes) {
    if (text.substr(0, prefix.size()) == prefix) return true;
  }
  return false;
}

}  // namespace

DriverCallKind driver_call_kind(std::string_view driver_function) {
  if (starts_with_any(driver_function, {"cuLaunchHostFunc"})) return DriverCallKind::none;  // runs on the CPU
  if (starts_with_any(driver_function, {"cuLaunch", "cuGraphLaunch"})) return DriverCallKind::launch;
  // Excludes cuMemSetAccess, which sets access rights of pages.
  if (starts_with_any(driver_function, {"cuMemcpy", "cuMemset", "cu64Memcpy", "cu64Memset"}))
    return DriverCallKind::copy;
  if (starts_with_any(driver_function, {"cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize"})) {
    return DriverCallKind::synchronization;
  }
  return DriverCallKind::none;
}

DriverCallbackIds find_driver_callback_ids(const CuptiFunctions& cupti) {
  DriverCallbackIds callback_ids;
  for (std::uint32_t id = 1; id < kMaxCallbackIds; ++id) {
    const char* name = nullptr;
    if (cupti.get_callback_name(CallbackDomain::driver, id, &name) != CuptiResult::success || name == nullptr) break;
    switch (driver_call_kind(name)) {
      case DriverCallKind::launch:
        callback_ids.launch_calls.push_back(id);
        break;
      case DriverCallKind::copy:
        callback_ids.copy_calls.push_back(id);
        break;
      case DriverCallKind::synchronization:
        callback_ids.synchronization_calls.push_back(id);
        break;
      case DriverCallKind::none:
        break;
    }
  }
  return callback_ids;
}

}  // namespace joulemap::capture::cupti
