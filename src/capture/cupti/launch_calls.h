// SPDX-License-Identifier: Apache-2.0
//
// Which functions of the CUDA driver give the GPU something to do. Their numbers (callback ids) are asked of CUPTI by name:
// names say what they are in versions to come, too.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "capture/cupti/cupti_abi.h"

namespace joulemap::capture::cupti {

enum class LaunchCall : std::uint8_t {
  none,
  launch,  // kernels and graphs: called in every step, many times
  copy,    // copies and fills
};

// "cuLaunchKernelEx_ptsz" is a launch.
LaunchCall launch_call_of(std::string_view driver_function);

struct LaunchCallbacks {
  std::vector<std::uint32_t> launches;
  std::vector<std::uint32_t> copies;
};
LaunchCallbacks find_launch_callbacks(const Functions& cupti);

}  // namespace joulemap::capture::cupti
