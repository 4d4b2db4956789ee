// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/launch_calls.h"

namespace joulemap::capture::cupti {
namespace {

constexpr std::uint32_t kMaxCallbacks = 10'000;  // CUDA 13.0 has 807; ids have no holes

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  for (const std::string_view beginning : beginnings) {
    if (text.substr(0, beginning.size()) == beginning) return true;
  }
  return false;
}

}  // namespace

LaunchCall launch_call_of(std::string_view driver_function) {
  if (starts_with_any(driver_function, {"cuLaunchHostFunc"})) return LaunchCall::none;  // runs on the CPU
  if (starts_with_any(driver_function, {"cuLaunch", "cuGraphLaunch"})) return LaunchCall::launch;
  // Excludes cuMemSetAccess, which sets access rights of pages.
  if (starts_with_any(driver_function, {"cuMemcpy", "cuMemset", "cu64Memcpy", "cu64Memset"})) return LaunchCall::copy;
  if (starts_with_any(driver_function, {"cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize"})) {
    return LaunchCall::synchronization;
  }
  return LaunchCall::none;
}

LaunchCallbacks find_launch_callbacks(const CuptiFunctions& cupti) {
  LaunchCallbacks found;
  for (std::uint32_t id = 1; id < kMaxCallbacks; ++id) {
    const char* name = nullptr;
    if (cupti.callback_name(CallbackDomain::driver, id, &name) != CuptiResult::success || name == nullptr) break;
    switch (launch_call_of(name)) {
      case LaunchCall::launch:
        found.launches.push_back(id);
        break;
      case LaunchCall::copy:
        found.copies.push_back(id);
        break;
      case LaunchCall::synchronization:
        found.synchronizations.push_back(id);
        break;
      case LaunchCall::none:
        break;
    }
  }
  return found;
}

}  // namespace joulemap::capture::cupti
