// SPDX-License-Identifier: Apache-2.0
//
// The page of a run without scripts: summary, power over time, the largest rows of each level, idle and unattributed
// energy, and notes. HTML with inline SVG plots. Pure.
#pragma once

#include <string>
#include <string_view>

#include "model/run_view.h"

namespace joulemap::page {

// Returns the HTML content of <main>.
std::string static_page(const RunView& view);
// Returns the CSS of the static page.
std::string_view static_page_css();

}  // namespace joulemap::page
