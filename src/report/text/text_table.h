// SPDX-License-Identifier: Apache-2.0
//
// TextTable: a table of text cells, for every output format. The producer rounds the numbers; CSV uses separate tables
// with all digits. Cells can contain untrusted text: each format escapes them. Plain data and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace joulemap::report {

struct TextTable {
  std::string caption;
  std::vector<std::string> column_headers;
  std::vector<bool> is_number;  // by column: right-aligned
  std::vector<std::vector<std::string>> rows;
};

// Columns have their natural width, two blanks apart; each line starts with `indent`. If lines exceed `columns`, text
// columns are shortened; numbers never are.
std::string terminal_table(const TextTable& table, std::string_view indent, std::size_t columns);
std::string markdown_table(const TextTable& table);
// Uses booktabs, and longtable because tables can exceed a page.
std::string latex_table(const TextTable& table);
// RFC 4180, header first, no caption.
std::string csv_table(const TextTable& table);

}  // namespace joulemap::report
