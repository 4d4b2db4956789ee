// SPDX-License-Identifier: Apache-2.0
//
// JOULEMAP_CHECK(condition, message): an assertion about our own code, enabled in every build. A failed check is a bug
// that no input can trigger; it prints the source location and aborts.
#pragma once

#include <string_view>

namespace joulemap {

[[noreturn]] void abort_after_failed_check(const char* file, int line, const char* condition, std::string_view message);

}  // namespace joulemap

#define JOULEMAP_CHECK(condition, message)                                                           \
  do {                                                                                               \
    if (!(condition)) ::joulemap::abort_after_failed_check(__FILE__, __LINE__, #condition, message); \
  } while (false)
