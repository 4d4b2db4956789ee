// SPDX-License-Identifier: Apache-2.0
//
// Profiles that are part of the program: data/devices/*.json as text, made into C++ when the program is built.
#pragma once

#include <string_view>

namespace joulemap::predict {

std::string_view built_in_h200();

}  // namespace joulemap::predict
