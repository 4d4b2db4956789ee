// SPDX-License-Identifier: Apache-2.0
//
// `report --format`: the rows of a report as a table in Markdown, LaTeX or CSV. Idle and unattributed energy are rows,
// too. Below the table, Markdown and LaTeX have a sentence on the provenance. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "model/report_result.h"
#include "report/text/energy_tree.h"

namespace joulemap::report {

enum class TableFormat { markdown, latex, csv };

struct TableOptions {
  TreeQuery row_query;
  std::optional<std::size_t> max_rows;  // maximum number of rows, the rest is summed; 0: all; none: 20, or all for CSV
};

std::string format_report_table(const ReportResult& result, TableFormat format, const TableOptions& query);

// Sentences on the origin of the energies: domains measured by which sensor, domains estimated, the meaning of ±, and
// the first diagnostic.
std::string provenance_sentence(const ReportResult& result);

}  // namespace joulemap::report
