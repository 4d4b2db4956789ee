// SPDX-License-Identifier: Apache-2.0
//
// Finds the CUDA driver functions that submit work to the GPU, and those that wait for the GPU. Their callback ids are
// found by the names that CUPTI reports, so that future versions work, too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "capture/cupti/cupti_abi.h"

namespace joulemap::capture::cupti {

enum class DriverCallKind : std::uint8_t {
  none,
  launch,  // kernels and graphs: many calls in every step
  copy,    // copies and fills
  synchronization,
};

// "cuLaunchKernelEx_ptsz" is a launch.
DriverCallKind driver_call_kind(std::string_view driver_function);

struct DriverCallbackIds {
  std::vector<std::uint32_t> launch_calls;
  std::vector<std::uint32_t> copy_calls;
  std::vector<std::uint32_t> synchronization_calls;

  bool is_synchronization(std::uint32_t id) const {
    return std::find(synchronization_calls.begin(), synchronization_calls.end(), id) != synchronization_calls.end();
  }
};
DriverCallbackIds find_driver_callback_ids(const CuptiFunctions& cupti);

}  // namespace joulemap::capture::cupti
