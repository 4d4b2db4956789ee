// SPDX-License-Identifier: Apache-2.0
#include "report/text/operation_text.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/text/energy_rows.h"
#include "report/text/energy_text.h"
#include "report/text/text_table.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

using predict::OperationRow;
using predict::OperationTable;
using predict::Pass;

std::string energy_per_flop_text(const OperationRow& row) {
  return row.flops > 0 ? format_number(1e12 * row.energy_j / row.flops, 3) : std::string("-");
}

std::vector<std::string> operation_row_cells(const OperationRow& forward_row, const OperationRow* backward) {
  std::vector<std::string> cells = {std::string(name_of(forward_row.operation.dtype)),
                                    energy_text(forward_row.energy_j), duration_text(forward_row.time_s),
                                    energy_per_flop_text(forward_row), std::string(name_of(forward_row.bound))};
  if (backward != nullptr) {
    cells.push_back(energy_text(backward->energy_j));
    cells.push_back(duration_text(backward->time_s));
  }
  return cells;
}

bool has_backward_rows(const OperationTable& table) {
  for (const OperationRow& row : table.rows) {
    if (row.operation.pass == Pass::backward) return true;
  }
  return false;
}

// A heading per size, and below it one line per precision; the backward pass is to the right of its forward pass.
std::string operation_sizes_table(const OperationTable& operation, std::size_t columns) {
  TextTable table{"", {"type", "energy", "time", "pJ/FLOP", "bound"}, {false, true, true, true, false}, {}};
  if (has_backward_rows(operation)) {
    table.column_headers.insert(table.column_headers.end(), {"backward", "time"});
    table.is_number.insert(table.is_number.end(), {true, true});
  }
  std::vector<std::string_view> sizes;
  for (std::size_t index = 0; index < operation.rows.size(); ++index) {
    const OperationRow& row = operation.rows[index];
    if (row.operation.pass == Pass::backward) continue;
    const bool has_backward_row =
        index + 1 < operation.rows.size() && operation.rows[index + 1].operation.pass == Pass::backward;
    table.rows.push_back(operation_row_cells(row, has_backward_row ? &operation.rows[index + 1] : nullptr));
    sizes.push_back(row.size);
  }
  const std::string lines = terminal_table(table, "    ", columns);
  std::string out;
  std::size_t line_number = 0;
  for (const std::string_view line : split(std::string_view(lines).substr(0, lines.size() - 1), '\n')) {
    const std::size_t row = line_number++;  // the first line is the header
    if (row > 0 && (row == 1 || sizes[row - 1] != sizes[row - 2])) out += fmt::format("  {}\n", sizes[row - 1]);
    out += fmt::format("{}\n", line);
  }
  return out;
}

}  // namespace

std::string operation_table_text(const OperationTable& table, const TextStyle& style) {
  std::string kind_text = std::string(name_of(table.subject.kind));
  for (const std::string* qualifier : {&table.subject.form, &table.subject.variant}) {
    if (!qualifier->empty()) kind_text += " " + *qualifier;
  }
  std::string out =
      "\n " +
      style.bold(fmt::format("{} ({}) on {}: one call", printable(table.subject.name), kind_text, table.device)) + "\n";
  out += table.fitted
             ? wrap_text(" ",
                         "Predicted by a model fitted to measurements of this GPU. Data that fits into its cache is "
                         "assumed to be cached.",
                         style.columns)
             : wrap_text(" ",
                         "Predicted from the datasheet: this GPU was not measured. Compare the values with each other; "
                         "do not use them as absolute energy.",
                         style.columns);
  if (!table.is_measured) {
    out += wrap_text(
        " WARNING: ",
        "no operation of this kind was measured: energy follows from tensor sizes and the datasheet alone and may "
        "be wrong by a factor of three.",
        style.columns);
  }
  out += "\n" + operation_sizes_table(table, style.columns) + "\n";
  for (const std::string& sentence : table.advice) out += wrap_text(" - ", sentence, style.columns);
  return out + "\n";
}

}  // namespace joulemap::report
