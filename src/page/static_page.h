// SPDX-License-Identifier: Apache-2.0
//
// The page without a script: figures, power over time, the largest rows of each level, unattributed energy, and notes.
// Plain HTML with inline plots; the same numbers as the page with a script. Pure.
#pragma once

#include <string>
#include <string_view>

#include "model/run_view.h"

namespace joulemap::page {

// The content of <main>.
std::string static_page(const RunView& view);
// The style sheet of the static page.
std::string_view static_page_css();

}  // namespace joulemap::page
