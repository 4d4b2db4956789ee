// SPDX-License-Identifier: Apache-2.0
#include "report/export/table_escapes.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/text/text_style.h"

namespace joulemap::report {
namespace {

std::string prefix_special_characters(std::string_view text, std::string_view special_characters,
                                      std::string_view prefix) {
  std::string out;
  for (const char c : printable(text)) {
    if (special_characters.find(c) != special_characters.npos) out += prefix;
    out += c;
  }
  return out;
}

}  // namespace

std::string escape_markdown(std::string_view text) { return prefix_special_characters(text, "|\\`*_<>[]", "\\"); }

std::string escape_latex(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    constexpr std::string_view kLatexSpecialCharacters = "&%$#_{}";
    if (c == '\\') {
      out += "\\textbackslash{}";
    } else if (c == '~' || c == '^') {
      out += fmt::format("\\{}{{}}", c);
    } else if (c == '<' || c == '>') {
      out += fmt::format("${}$", c);
    } else {
      if (kLatexSpecialCharacters.find(c) != kLatexSpecialCharacters.npos) out += '\\';
      out += c;
    }
  }
  const std::size_t sign = out.find("±");
  return sign == std::string::npos ? out
                                   : out.substr(0, sign) + "$\\pm$" + out.substr(sign + std::string_view("±").size());
}

std::string escape_csv_field(std::string_view text) {
  // Spreadsheets evaluate text that begins with one of these. Programs that read such a name must strip the apostrophe.
  constexpr std::string_view kFormulaStartCharacters = "=+-@";
  std::string printable_text = printable(text);
  if (!printable_text.empty() && kFormulaStartCharacters.find(printable_text[0]) != kFormulaStartCharacters.npos &&
      !parse_double(printable_text))
    printable_text.insert(0, "'");
  if (printable_text.find_first_of(",\"") == printable_text.npos) return printable_text;
  return "\"" + prefix_special_characters(printable_text, "\"", "\"") + "\"";
}

}  // namespace joulemap::report
