// SPDX-License-Identifier: Apache-2.0
//
// TableRow: a row of `report --format`, with unformatted numbers, for all formats. Plain data; joules, watts, seconds.
// Unknown values are none.
#pragma once

#include <string>
#include <vector>

#include "report/export/tables.h"

namespace joulemap::report {

struct TableRow {
  std::string name;
  ReportRow row;
  bool is_remainder = false;  // not a row of the report: sum of omitted rows, idle or unattributed energy
};

struct TableContent {
  std::vector<TableRow> rows;
  std::optional<double> total_j;   // denominator of shares
  bool has_device_column = false;  // rows belong to several devices
};

// At most `max_rows` rows of the report, then their remainder. A report by domain is neither sorted nor limited.
TableContent make_table_content(const ReportResult& result, const TreeQuery& query, std::size_t max_rows);

// Half the width of the interval of energy_j, in J; none if the interval is unknown.
std::optional<double> interval_half_width_j(const ReportRow& row);

}  // namespace joulemap::report
