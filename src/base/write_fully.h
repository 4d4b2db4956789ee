// SPDX-License-Identifier: Apache-2.0
//
// Writing all of a text, whatever is at the other end. A reader that has gone away is an error to report, not a reason to
// die; and how this process treats SIGPIPE is not changed for that, because its children would inherit it.
#pragma once

#include <string_view>

#include "base/result.h"

namespace joulemap {

// `name` is what a message calls the place: a path, "stdout".
Status write_fully(int fd, std::string_view text, std::string_view name);

}  // namespace joulemap
