// SPDX-License-Identifier: Apache-2.0
//
// Names of C++ functions as people write them.
#pragma once

#include <string>

namespace joulemap {

// The name itself where it is not mangled.
std::string demangled(const std::string& name);

}  // namespace joulemap
