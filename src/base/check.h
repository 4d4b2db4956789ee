// SPDX-License-Identifier: Apache-2.0
//
// JOULEMAP_CHECK(condition, message): a statement about our own code that must hold. Always on. A failing
// check is a bug, never something that input can reach; it prints where and aborts.
#pragma once

#include <string_view>

namespace joulemap {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view message);

}  // namespace joulemap

#define JOULEMAP_CHECK(condition, message)                                               \
  do {                                                                                   \
    if (!(condition)) ::joulemap::check_failed(__FILE__, __LINE__, #condition, message); \
  } while (false)
