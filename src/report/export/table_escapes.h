// SPDX-License-Identifier: Apache-2.0
//
// Texts as cells of tables: what means something to Markdown, LaTeX or CSV is escaped, what a terminal would obey is gone.
// Pure.
#pragma once

#include <string>
#include <string_view>

namespace joulemap::report {

std::string markdown_text(std::string_view text);
std::string latex_text(std::string_view text);
// In quotes where it needs them (RFC 4180); behind an apostrophe where a spreadsheet would take it for a formula.
std::string csv_text(std::string_view text);

}  // namespace joulemap::report
