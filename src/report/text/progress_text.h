// SPDX-License-Identifier: Apache-2.0
//
// Text of the progress line (cli/progress_line.h). Pure.
#pragma once

#include <string>
#include <string_view>

namespace joulemap::report {

// "reading trace.json: 45 %, about 12 s left". `share`: part that is done, 0 to 1. The time left is extrapolated from
// elapsed_s; it is omitted below 2 % and at 100 %.
std::string progress_text(std::string_view task_name, double share, double elapsed_s);

}  // namespace joulemap::report
