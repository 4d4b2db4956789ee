// SPDX-License-Identifier: Apache-2.0
//
// Which lines of an energy tree are shown: starting at the root, the branch with the most energy is unfolded next, as
// long as there are lines left. The same for text and for tables. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/text/energy_tree.h"

namespace joulemap::report {

struct TreeLine {
  const EnergyNode* node = nullptr;  // of the tree given; nothing: a line for the small ones that are left out
  std::vector<bool> is_last;         // for each level down to this one: no sibling follows
  std::size_t hidden = 0;            // rows in it that have no line
  EnergyNode rest;                   // where node is nothing: the sum of what is left out
};

struct TreeLimits {
  std::optional<std::size_t> depth;
  std::size_t lines = 30;
  double least_share = 0.005;  // of the root; less is left out
};

std::vector<TreeLine> tree_lines(const EnergyNode& root, const TreeLimits& limits);

}  // namespace joulemap::report
