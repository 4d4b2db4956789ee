// SPDX-License-Identifier: Apache-2.0
//
// The rows of a report as a tree for people, with columns for energy, uncertainty, share, power, time, calls and basis.
// The largest branches are expanded first (tree_lines.h). For terminals of 60 columns or more. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "model/report_result.h"
#include "report/text/energy_tree.h"
#include "report/text/text_style.h"

namespace joulemap::report {

struct TreeTextOptions {
  TreeQuery tree_query;
  std::optional<std::size_t> max_depth;  // maximum depth of the tree; none: no limit
  // Maximum number of lines; 0: all. None: 30, without nodes below 0.5 % of the energy.
  std::optional<std::size_t> max_rows;
};

// Empty for a report by domain, whose rows are printed separately, and for a report without rows.
std::string tree_text(const ReportResult& result, const TreeTextOptions& tree_options, const TextStyle& style);

}  // namespace joulemap::report
