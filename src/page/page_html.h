// SPDX-License-Identifier: Apache-2.0
//
// `report --html` and `diff --html`: a run, or what two differ in, as one file of HTML that loads nothing, from disk or
// anywhere. The script of web/ draws it from the data inside. Without a script (npm was not there when the program was
// built) or in a browser that runs none, what stands in it is a static page: figures, pictures, tables. Whatever a
// recording calls its layers is text, never markup. Pure.
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

// As text between tags and in attributes.
std::string escaped_html(std::string_view text);
// JSON that may stand in a script element: no "</script>" in it, whatever its strings say.
std::string embeddable(std::string_view json);

}  // namespace joulemap::page
