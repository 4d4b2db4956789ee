// SPDX-License-Identifier: Apache-2.0
//
// JOULEMAP_CHECK(condition, message): an assertion about our own code, enabled in every build. A failed check is a bug
// that no input can trigger; it prints the source location and aborts.
#pragma once

#include <string_view>

namespace joulemap {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view message);

}  // namespace joulemap

#define JOULEMAP_CHECK(condition, message)                                               \
  do {                                                                                   \
    if (!(condition)) ::joulemap::check_failed(__FILE__, __LINE__, #condition, message); \
  } while (false)
