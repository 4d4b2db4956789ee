// SPDX-License-Identifier: Apache-2.0
//
// Short names of GPU kernels for people. A demangled name contains the base name between return type, namespaces,
// nested template arguments and parameters. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace joulemap::report {

// Shortens a name to at most `columns` characters. Drops return type and parameters, then as necessary namespaces, then
// all but the end of the template arguments, which distinguishes variants. If that is still too long, shortens the base
// name at its centre.
std::string brief_kernel_name(std::string_view name, std::size_t columns);

}  // namespace joulemap::report
