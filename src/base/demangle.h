// SPDX-License-Identifier: Apache-2.0
//
// Demangles names of C++ functions.
#pragma once

#include <string>

namespace joulemap {

// Returns `name` unchanged if it is not mangled.
std::string demangle(const std::string& name);

}  // namespace joulemap
