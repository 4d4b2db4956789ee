// SPDX-License-Identifier: Apache-2.0
//
// Where the fake machines of tests/sysroots are.
#pragma once

#include <string>
#include <string_view>

namespace joulemap {

inline std::string sysroot(std::string_view name) { return std::string(JOULEMAP_SYSROOTS) + "/" + std::string(name); }

}  // namespace joulemap
