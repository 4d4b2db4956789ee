// SPDX-License-Identifier: Apache-2.0
//
// The part of the Ledger that sums rows along the branches of their tree. It sums joules by class and derives the
// interval from those, as for a single row. In each replicate of the fit, the errors of all rows of a branch are
// correlated: some add up, others cancel (one layer's gain is its neighbour's loss). Adding half widths would make
// intervals too wide, adding them in quadrature too narrow.
#include <cmath>

#include "attribution/ledger/ledger.h"
#include "model/path_tree.h"

namespace joulemap::attribution {

std::vector<ReportRow> Ledger::groups(const Grouping& grouping) const {
  struct Group {
    Entry sum;
    double variance_j2 = 0;  // from sampling of steps; independent between rows
  };
  std::map<Key, Group> groups;
  for (const auto& [key, entry] : entries_) {
    if (!path_matches(key.first, key.second, grouping.filter)) continue;
    std::vector<std::string> branch = tree_path(key.first, name_of(level_));
    const std::size_t depth = branch.size();
    for (std::size_t length = 0; length <= depth; ++length) {
      branch.resize(depth - length);
      Group& group = groups[{branch, key.second}];
      group.sum.basis = entry.basis;  // of its device, until the shares refine it
      group.sum.has_energy = group.sum.has_energy || entry.has_energy;
      group.sum.sum.count += entry.sum.count;
      group.sum.sum.time_s += entry.sum.time_s;
      group.sum.sum.energy_j += entry.sum.energy_j;
      group.sum.sum.waiting_s += entry.sum.waiting_s;
      group.sum.sum.waiting_j += entry.sum.waiting_j;
      group.sum.sum.by_class.add(entry.sum.by_class);
      const double spread_j = entry.spread * entry.sum.energy_j;
      group.variance_j2 += spread_j * spread_j;
    }
  }
  std::vector<ReportRow> rows;
  for (auto& [key, group] : groups) {
    if (group.sum.sum.energy_j > 0) group.sum.spread = std::sqrt(group.variance_j2) / group.sum.sum.energy_j;
    if (key.first.empty()) {
      rows.push_back(row_of({{key.second}, key.second}, group.sum));
      rows.back().path.clear();
    } else {
      rows.push_back(row_of(key, group.sum));
    }
  }
  return rows;
}

}  // namespace joulemap::attribution
