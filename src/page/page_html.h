// SPDX-License-Identifier: Apache-2.0
//
// `report --html` and `diff --html`: a run, or a comparison, as one HTML file that loads nothing, from disk or from
// anywhere. The script of web/ draws it from the embedded data. Without the script (npm was missing when the program
// was built), or in a browser without scripts, the file is a static page: figures, plots, tables. Names of layers in a
// recording are escaped, never markup. Pure.
#pragma once

#include <string>
#include <string_view>

#include "model/run_difference.h"
#include "model/run_view.h"
#include "page/page_bundle.h"

namespace joulemap::page {

std::string page_html(const RunView& view, const PageBundle& bundle = page_bundle());

// `diff --html`, likewise.
std::string diff_html(const RunDifference& difference, const PageBundle& bundle = page_bundle());

// Escapes text for use between tags and in attributes.
std::string escaped_html(std::string_view text);
// Escapes JSON for a script element: the result contains no "</script>", whatever its strings contain.
std::string escape_json_for_script(std::string_view json);

}  // namespace joulemap::page
