// SPDX-License-Identifier: Apache-2.0
//
// The rows of a report as a table for other documents: Markdown, LaTeX, CSV. The same numbers as in the terminal, and
// as there idle energy and what is nobody's are rows of it, and how it was measured stands with it. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "model/report_result.h"
#include "report/text/energy_tree.h"

namespace joulemap::report {

enum class TableFormat { markdown, latex, csv };

struct TableQuery {
  TreeQuery rows;
  std::optional<std::size_t> top;  // so many rows, the others summed up; nothing: twenty, of CSV all; 0: all
};

std::string table_text(const ReportResult& result, TableFormat format, const TableQuery& query);

// In one sentence how the energies came to be: what was measured by what, what was estimated, how sure that is.
std::string provenance_sentence(const ReportResult& result);

}  // namespace joulemap::report
