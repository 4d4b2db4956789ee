// SPDX-License-Identifier: Apache-2.0
//
// Names of GPU kernels for people. A demangled one is a line of C++ that hides its name in the middle: what returns,
// namespaces, templates within templates, parameters. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace joulemap::report {

// At most so many columns: without parameters; where that is too long without namespaces; where that is too long the
// end of its template arguments, which tells variants apart. What is no such name is shortened in the middle.
std::string brief_kernel_name(std::string_view name, std::size_t columns);

}  // namespace joulemap::report
