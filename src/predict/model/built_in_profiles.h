// SPDX-License-Identifier: Apache-2.0
//
// GPU profiles that are compiled into joulemap: data/devices/*.json as text, converted to C++ by the build.
#pragma once

#include <string_view>

namespace joulemap::predict {

std::string_view built_in_h200_profile_json();

}  // namespace joulemap::predict
