// SPDX-License-Identifier: Apache-2.0
//
// Escapes text for table cells in Markdown, LaTeX or CSV, and removes terminal control characters. Pure.
#pragma once

#include <string>
#include <string_view>

namespace joulemap::report {

std::string markdown_text(std::string_view text);
std::string latex_text(std::string_view text);
// Quoted if necessary (RFC 4180); prefixed with an apostrophe if a spreadsheet would read it as a formula.
std::string csv_text(std::string_view text);

}  // namespace joulemap::report
