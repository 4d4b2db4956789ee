// SPDX-License-Identifier: Apache-2.0
//
// TableRow: a row of a table in any format, its numbers still numbers. Plain data; joules, watts, seconds. What is not
// known is empty.
#pragma once

#include <string>
#include <vector>

#include "report/export/tables.h"

namespace joulemap::report {

struct TableRow {
  std::string name;
  ReportRow row;
  bool is_rest = false;  // a sum of what is left out, or nobody's
};

struct TableContent {
  std::vector<TableRow> rows;
  std::optional<double> total_j;  // what shares are shares of
  bool tells_device = false;      // rows are of several
};

TableContent table_content(const ReportResult& result, const TreeQuery& query, std::size_t most);

// Half of the interval.
std::optional<double> half_width_of(const ReportRow& row);

}  // namespace joulemap::report
