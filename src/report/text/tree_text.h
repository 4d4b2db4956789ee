// SPDX-License-Identifier: Apache-2.0
//
// The rows of a report as a tree for people: energy, how sure it is, its share as a bar, power, time, how often, on
// what basis. Branches are unfolded, the largest first, as long as there are lines; what is not shown is counted. Fits
// the columns of the terminal, from 60 on. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "model/report_result.h"
#include "report/text/energy_tree.h"
#include "report/text/text_style.h"

namespace joulemap::report {

struct TreeView {
  TreeQuery query;
  std::optional<std::size_t> depth;  // levels that are unfolded at most
  // Lines at most; 0: all of them. Nothing: some thirty, and none for what is less than half a percent.
  std::optional<std::size_t> top;
};

// Nothing for a report by domain, whose rows stand above, and for one without rows.
std::string tree_text(const ReportResult& result, const TreeView& view, const TextStyle& style);

}  // namespace joulemap::report
