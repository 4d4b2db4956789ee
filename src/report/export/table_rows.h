// SPDX-License-Identifier: Apache-2.0
//
// TableRow: a table row for any format, with unformatted numbers. Plain data; joules, watts, seconds. Unknown values
// are empty.
#pragma once

#include <string>
#include <vector>

#include "report/export/tables.h"

namespace joulemap::report {

struct TableRow {
  std::string name;
  ReportRow row;
  bool is_remainder = false;  // sum of omitted rows, or idle or unattributed energy
};

struct TableContent {
  std::vector<TableRow> rows;
  std::optional<double> total_j;   // denominator of shares
  bool has_device_column = false;  // rows belong to several devices
};

TableContent table_content(const ReportResult& result, const TreeQuery& query, std::size_t most);

// Half the width of the interval.
std::optional<double> interval_half_width(const ReportRow& row);

}  // namespace joulemap::report
