// SPDX-License-Identifier: Apache-2.0
//
// Selects the nodes of an energy tree that get a line. Starting at the root, expands the branch with the most energy
// next, until no lines are left. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/text/energy_tree.h"

namespace joulemap::report {

struct TreeLine {
  const EnergyNode* node = nullptr;   // node of the tree; null: a line for the sum of omitted children
  std::vector<bool> is_last_sibling;  // per level down to this node: whether no sibling follows
  std::size_t hidden_row_count = 0;   // number of leaves below a node that is not expanded, else 0
  EnergyNode omitted_children_sum;    // sum of the omitted children, if node is null
};

struct TreeLimits {
  std::optional<std::size_t> max_depth;
  std::size_t max_lines = 30;
  double min_share = 0.005;  // nodes below this fraction of the root are omitted
};

std::vector<TreeLine> tree_lines(const EnergyNode& root, const TreeLimits& limits);

}  // namespace joulemap::report
