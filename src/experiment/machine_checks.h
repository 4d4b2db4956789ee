// SPDX-License-Identifier: Apache-2.0
//
// Names that `require`, `warn` and `set` of [checks] know.
#pragma once

#include <string_view>

namespace joulemap::experiment {

inline constexpr std::string_view kCheckNames = "sensors governor turbo load swap gpu_processes throttling temperature";
inline constexpr std::string_view kSettingNames = "governor turbo";

}  // namespace joulemap::experiment
