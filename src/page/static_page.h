// SPDX-License-Identifier: Apache-2.0
//
// The page without a script: figures, power over time, the largest rows of each level, what is nobody's, and notes.
// Plain HTML with pictures inside; the same numbers as the page with one. Pure.
#pragma once

#include <string>
#include <string_view>

#include "model/run_view.h"

namespace joulemap::page {

// What stands in <main>.
std::string static_page(const RunView& view);
// Its style sheet.
std::string_view static_style();

}  // namespace joulemap::page
