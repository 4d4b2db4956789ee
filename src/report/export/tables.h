// SPDX-License-Identifier: Apache-2.0
//
// The rows of a report as a table for documents: Markdown, LaTeX, CSV. The numbers match the terminal output. Idle and
// unattributed energy are rows, and the provenance is included. Pure.
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
  TreeQuery rows;
  std::optional<std::size_t> top;  // number of rows, the others summed; none: 20, for CSV all; 0: all
};

std::string formatted_table(const ReportResult& result, TableFormat format, const TableOptions& query);

// One sentence on the origin of the energies: what was measured with which sensor, what was estimated, and the
// uncertainty.
std::string provenance_sentence(const ReportResult& result);

}  // namespace joulemap::report
