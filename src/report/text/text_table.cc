// SPDX-License-Identifier: Apache-2.0
#include "report/text/text_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/export/table_escapes.h"
#include "report/text/text_style.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kMinTextColumnWidth = 8;  // minimum width of a shortened text column

std::vector<std::size_t> column_widths(const TextTable& table, std::size_t available_columns) {
  std::vector<std::size_t> widths;
  for (const std::string& head : table.column_headers) widths.push_back(count_display_columns(head));
  for (const std::vector<std::string>& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], count_display_columns(row[i]));
  }
  const auto total = [&] {
    std::size_t sum = widths.empty() ? 0 : 2 * (widths.size() - 1);
    for (const std::size_t width : widths) sum += width;
    return sum;
  };
  while (total() > available_columns) {
    std::size_t widest_column = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (table.is_number[i] || widths[i] <= kMinTextColumnWidth) continue;
      if (widest_column == widths.size() || widths[i] > widths[widest_column]) widest_column = i;
    }
    if (widest_column == widths.size()) break;
    --widths[widest_column];
  }
  return widths;
}

std::string terminal_table_line(const TextTable& table, const std::vector<std::string>& row,
                                const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string text = shorten_to_columns(printable(row[i]), widths[i]);
    if (i > 0) line += "  ";
    line += table.is_number[i] ? align_right(text, widths[i]) : align_left(text, widths[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

template <class EscapeFunction>
std::string join_cells(const std::vector<std::string>& row, std::string_view separator, const EscapeFunction& escape) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) line += (i > 0 ? std::string(separator) : "") + escape(row[i]);
  return line;
}

}  // namespace

std::string terminal_table(const TextTable& table, std::string_view indent, std::size_t columns) {
  const std::size_t available_columns = columns > indent.size() ? columns - indent.size() : columns;
  const std::vector<std::size_t> widths = column_widths(table, available_columns);
  std::string out = std::string(indent) + terminal_table_line(table, table.column_headers, widths) + "\n";
  for (const std::vector<std::string>& row : table.rows) {
    out += std::string(indent) + terminal_table_line(table, row, widths) + "\n";
  }
  return out;
}

std::string markdown_table(const TextTable& table) {
  std::string out = fmt::format("| {} |\n|", join_cells(table.column_headers, " | ", escape_markdown));
  for (const bool is_number : table.is_number) out += is_number ? "---:|" : "---|";
  out += "\n";
  for (const std::vector<std::string>& row : table.rows) out += "| " + join_cells(row, " | ", escape_markdown) + " |\n";
  return out;
}

std::string latex_table(const TextTable& table) {
  std::string columns;
  for (const bool is_number : table.is_number) columns += is_number ? 'r' : 'l';
  std::string out =
      fmt::format("\\begin{{longtable}}{{{}}}\n  \\caption{{{}}} \\\\\n  \\toprule\n  {} \\\\\n  \\midrule\n", columns,
                  escape_latex(table.caption), join_cells(table.column_headers, " & ", escape_latex));
  out += "  \\endhead\n";
  for (const std::vector<std::string>& row : table.rows) out += "  " + join_cells(row, " & ", escape_latex) + " \\\\\n";
  return out + "  \\bottomrule\n\\end{longtable}\n";
}

std::string csv_table(const TextTable& table) {
  std::string out = join_cells(table.column_headers, ",", escape_csv_field) + "\n";
  for (const std::vector<std::string>& row : table.rows) out += join_cells(row, ",", escape_csv_field) + "\n";
  return out;
}

}  // namespace joulemap::report
