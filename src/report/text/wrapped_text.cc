// SPDX-License-Identifier: Apache-2.0
#include "report/text/wrapped_text.h"

#include "base/text.h"

namespace joulemap::report {

std::string wrap_text(std::string_view first_line_prefix, std::string_view text, std::size_t width) {
  const std::string indent(first_line_prefix.size(), ' ');
  std::string out(first_line_prefix);
  std::size_t column = first_line_prefix.size();
  bool at_start = true;
  for (const std::string_view word : split_whitespace(text)) {
    if (!at_start && column + 1 + word.size() > width) {
      out += "\n" + indent;
      column = indent.size();
      at_start = true;
    }
    if (!at_start) out += ' ';
    out += word;
    column += word.size() + (at_start ? 0 : 1);
    at_start = false;
  }
  return out + "\n";
}

}  // namespace joulemap::report
