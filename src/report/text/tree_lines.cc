// SPDX-License-Identifier: Apache-2.0
#include "report/text/tree_lines.h"

#include <algorithm>
#include <map>
#include <queue>
#include <span>

namespace joulemap::report {
namespace {

// Share of a node in the whole tree: by energy, or by time if no energy is known.
class NodeShares {
 public:
  explicit NodeShares(const EnergyNode& root) : is_weighted_by_energy_(root.summed_row.energy_j.value_or(0) > 0) {
    if (is_weighted_by_energy_) {
      total_weight_ = *root.summed_row.energy_j;
      return;
    }
    for (const EnergyNode& child : root.children) total_weight_ += child.summed_row.time_s;
  }
  double share(const EnergyNode& node) const {
    const double value = is_weighted_by_energy_ ? node.summed_row.energy_j.value_or(0) : node.summed_row.time_s;
    return total_weight_ > 0 ? value / total_weight_ : 0;
  }

 private:
  bool is_weighted_by_energy_;
  double total_weight_ = 0;
};

struct ExpansionCandidate {
  double share = 0;
  std::size_t sequence_number = 0;  // of two equal shares, the smaller order comes first
  const EnergyNode* node = nullptr;
  std::size_t depth = 0;

  bool operator<(const ExpansionCandidate& other_candidate) const {
    return share != other_candidate.share ? share < other_candidate.share
                                          : sequence_number > other_candidate.sequence_number;
  }
};

constexpr std::size_t kMaxExpandedDevices = 16;

// For each expanded node, the number of children that get a line. These are its first children.
using ShownChildCounts = std::map<const EnergyNode*, std::size_t>;

std::size_t count_children_to_show(const EnergyNode& node, const NodeShares& weights, double min_share) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    if (weights.share(node.children[i]) >= min_share) count = i + 1;
  }
  return count;
}

ShownChildCounts count_shown_children(const EnergyNode& root, const TreeLimits& limits) {
  const NodeShares weights(root);
  ShownChildCounts expanded_nodes;
  std::priority_queue<ExpansionCandidate> waiting;
  std::size_t order = 0;
  std::size_t remaining_lines = limits.max_lines;
  waiting.push({1, order++, &root, 0});
  while (!waiting.empty() && remaining_lines > 0) {
    const ExpansionCandidate candidate = waiting.top();
    waiting.pop();
    const std::vector<EnergyNode>& children = candidate.node->children;
    if (children.empty() || (limits.max_depth && candidate.depth >= *limits.max_depth)) continue;
    // Devices are always shown, even those without energy.
    const bool are_few_devices =
        candidate.depth == 0 && children.size() <= std::min(remaining_lines, kMaxExpandedDevices);
    std::size_t shown_child_count =
        are_few_devices ? children.size() : count_children_to_show(*candidate.node, weights, limits.min_share);
    // A line "1 more" would not be shorter than the row that it replaces.
    if (shown_child_count > 0 && shown_child_count + 1 == children.size()) ++shown_child_count;
    if (shown_child_count > remaining_lines ||
        (shown_child_count < children.size() && shown_child_count + 1 > remaining_lines))
      shown_child_count = remaining_lines - 1;
    if (shown_child_count == 0) continue;
    remaining_lines -= std::min(remaining_lines, shown_child_count + (shown_child_count < children.size() ? 1 : 0));
    expanded_nodes[candidate.node] = shown_child_count;
    for (std::size_t i = 0; i < shown_child_count; ++i) {
      waiting.push({weights.share(children[i]), order++, &children[i], candidate.depth + 1});
    }
  }
  return expanded_nodes;
}

EnergyNode sum_hidden_nodes(std::span<const EnergyNode> hidden_nodes) {
  EnergyNode sum;
  std::size_t rows = 0;
  for (const EnergyNode& node : hidden_nodes) {
    rows += count_leaves(node);
    sum.summed_row.time_s += node.summed_row.time_s;
    if (node.summed_row.energy_j)
      sum.summed_row.energy_j = sum.summed_row.energy_j.value_or(0) + *node.summed_row.energy_j;
  }
  sum.name = std::to_string(rows) + " more";
  return sum;
}

void append_tree_lines(std::vector<TreeLine>& lines, const EnergyNode& node, const ShownChildCounts& expanded_nodes,
                       std::vector<bool> is_last_sibling) {
  const auto expanded_entry = expanded_nodes.find(&node);
  if (expanded_entry == expanded_nodes.end()) return;
  const std::size_t shown_child_count = expanded_entry->second;
  is_last_sibling.push_back(false);
  for (std::size_t i = 0; i < shown_child_count; ++i) {
    is_last_sibling.back() = i + 1 == node.children.size();
    const EnergyNode& child = node.children[i];
    const bool is_expanded = expanded_nodes.contains(&child) || child.children.empty();
    lines.push_back({&child, is_last_sibling, is_expanded ? 0 : count_leaves(child), {}});
    append_tree_lines(lines, child, expanded_nodes, is_last_sibling);
  }
  if (shown_child_count == node.children.size()) return;
  is_last_sibling.back() = true;
  lines.push_back({nullptr, is_last_sibling, 0, sum_hidden_nodes(std::span(node.children).subspan(shown_child_count))});
}

}  // namespace

std::vector<TreeLine> tree_lines(const EnergyNode& root, const TreeLimits& limits) {
  std::vector<TreeLine> lines;
  append_tree_lines(lines, root, count_shown_children(root, limits), {});
  return lines;
}

}  // namespace joulemap::report
