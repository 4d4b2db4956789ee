// SPDX-License-Identifier: Apache-2.0
//
// Writes a whole text to any kind of descriptor. A closed reader (EPIPE) is returned as an error and does not kill the
// process. The SIGPIPE disposition is not changed, because children would inherit it.
#pragma once

#include <string_view>

#include "base/result.h"

namespace joulemap {

// `name` names the target in error messages: a path, "stdout".
Status write_fully(int fd, std::string_view text, std::string_view name);

}  // namespace joulemap
