// SPDX-License-Identifier: Apache-2.0
//
// TextTable: a table whose cells are texts already, for every format that shows one. Who makes it rounds; CSV gets tables of
// its own with all digits. Texts may come from outside: each format escapes them. Plain data and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace joulemap::report {

struct TextTable {
  std::string caption;
  std::vector<std::string> heads;
  std::vector<bool> is_number;  // by column: aligned right
  std::vector<std::vector<std::string>> rows;
};

// Columns as wide as they need to be, two blanks apart, each line after `indent`. A column of texts that makes lines longer
// than `columns` is shortened; numbers never are.
std::string terminal_table(const TextTable& table, std::string_view indent, std::size_t columns);
std::string markdown_table(const TextTable& table);
// With booktabs; longtable, as such tables grow over a page.
std::string latex_table(const TextTable& table);
// RFC 4180, heads first, no caption.
std::string csv_table(const TextTable& table);

}  // namespace joulemap::report
