// SPDX-License-Identifier: Apache-2.0
//
// Profiles that are built into the program: data/devices/*.json as text, converted to C++ by the build.
#pragma once

#include <string_view>

namespace joulemap::predict {

std::string_view built_in_h200();

}  // namespace joulemap::predict
