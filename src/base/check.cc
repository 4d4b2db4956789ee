// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace joulemap {

void abort_after_failed_check(const char* file, int line, const char* condition, std::string_view message) {
  std::fprintf(stderr, "joulemap: bug at %s:%d: %s: %.*s\n", file, line, condition, static_cast<int>(message.size()),
               message.data());
  std::abort();
}

}  // namespace joulemap
