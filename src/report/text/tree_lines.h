// SPDX-License-Identifier: Apache-2.0
//
// Selects the lines of an energy tree to show. Starting at the root, it expands the branch with the most energy next
// until no lines are left. Shared by text and tables. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/text/energy_tree.h"

namespace joulemap::report {

struct TreeLine {
  const EnergyNode* node = nullptr;  // node of the given tree; null: summary line for omitted children
  std::vector<bool> is_last;         // per level down to this node: no sibling follows
  std::size_t hidden_rows = 0;       // number of rows below it without a line
  EnergyNode omitted_sum;            // if node is null: sum of the omitted children
};

struct TreeLimits {
  std::optional<std::size_t> depth;
  std::size_t lines = 30;
  double min_share = 0.005;  // fraction of the root; smaller nodes are omitted
};

std::vector<TreeLine> tree_lines(const EnergyNode& root, const TreeLimits& limits);

}  // namespace joulemap::report
