// SPDX-License-Identifier: Apache-2.0
//
// Escapes text for table cells in Markdown, LaTeX or CSV. Control characters are replaced. Pure.
#pragma once

#include <string>
#include <string_view>

namespace joulemap::report {

std::string escape_markdown(std::string_view text);
std::string escape_latex(std::string_view text);
// Quotes the text if necessary (RFC 4180). Prefixes an apostrophe if a spreadsheet would evaluate it as a formula.
std::string escape_csv_field(std::string_view text);

}  // namespace joulemap::report
