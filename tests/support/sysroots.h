// SPDX-License-Identifier: Apache-2.0
//
// Paths of the fake machines in tests/sysroots.
#pragma once

#include <string>
#include <string_view>

namespace joulemap {

inline std::string sysroot(std::string_view name) { return std::string(JOULEMAP_SYSROOTS) + "/" + std::string(name); }

}  // namespace joulemap
