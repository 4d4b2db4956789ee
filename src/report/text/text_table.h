// SPDX-License-Identifier: Apache-2.0
//
// TextTable: a table of text cells, which can be printed in any format. Numbers are already formatted. Cells may
// contain untrusted text: each format escapes it. Plain data and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace joulemap::report {

struct TextTable {
  std::string caption;
  std::vector<std::string> column_headers;
  std::vector<bool> is_number;  // one per column; columns of numbers are right-aligned
  std::vector<std::vector<std::string>> rows;
};

// Columns are as wide as their widest cell, two blanks apart; each line begins with `indent`. If lines would exceed
// `columns`, columns of text are shortened, columns of numbers never.
std::string terminal_table(const TextTable& table, std::string_view indent, std::size_t columns);
std::string markdown_table(const TextTable& table);
// Uses booktabs, and longtable because tables can exceed a page.
std::string latex_table(const TextTable& table);
// CSV as in RFC 4180, but lines end with \n. Header first, no caption.
std::string csv_table(const TextTable& table);

}  // namespace joulemap::report
