// SPDX-License-Identifier: Apache-2.0
//
// The line that long work shows on a terminal. Pure.
#pragma once

#include <string>
#include <string_view>

namespace joulemap::report {

// "reading trace.json: 45 %, about 12 s left". The time left follows from the time taken so far; none at the very beginning.
std::string progress_text(std::string_view what, double share, double elapsed_s);

}  // namespace joulemap::report
