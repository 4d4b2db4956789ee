// SPDX-License-Identifier: Apache-2.0
//
// `report --html` and `diff --html`: a run, or a comparison, as one HTML file without external resources. The script of
// web/ draws it from the embedded JSON. If npm was missing when joulemap was built, or if the browser runs no scripts,
// the file shows a static page: numbers, plots and tables of a run, or the text of a comparison. Names in a recording
// are escaped and never become markup. Pure.
#pragma once

#include <string>
#include <string_view>

#include "model/run_difference.h"
#include "model/run_view.h"
#include "page/page_bundle.h"

namespace joulemap::page {

std::string page_html(const RunView& view, const PageBundle& bundle = page_bundle());

std::string diff_html(const RunDifference& difference, const PageBundle& bundle = page_bundle());

// Escapes text for use between tags and in attributes.
std::string escape_html(std::string_view text);
// Escapes JSON for a script element: the result contains no "</script>", whatever its strings contain.
std::string escape_json_for_script(std::string_view json);

}  // namespace joulemap::page
