// SPDX-License-Identifier: Apache-2.0
#include "report/text/tree_lines.h"

#include <algorithm>
#include <map>
#include <queue>
#include <span>

namespace joulemap::report {
namespace {

// Share of a node in the whole tree: by energy, or by time if no energy is known.
class Weights {
 public:
  explicit Weights(const EnergyNode& root) : by_energy_(root.sum.energy_j.value_or(0) > 0) {
    if (by_energy_) {
      total_ = *root.sum.energy_j;
      return;
    }
    for (const EnergyNode& child : root.children) total_ += child.sum.time_s;
  }
  double share(const EnergyNode& node) const {
    const double value = by_energy_ ? node.sum.energy_j.value_or(0) : node.sum.time_s;
    return total_ > 0 ? value / total_ : 0;
  }

 private:
  bool by_energy_;
  double total_ = 0;
};

struct Candidate {
  double share = 0;
  std::size_t order = 0;  // of two equal shares, the smaller order comes first
  const EnergyNode* node = nullptr;
  std::size_t depth = 0;

  bool operator<(const Candidate& other) const {
    return share != other.share ? share < other.share : order > other.order;
  }
};

constexpr std::size_t kMaxDevices = 16;

// For each expanded node, the number of children that get a line. These are its first children.
using Unfolded = std::map<const EnergyNode*, std::size_t>;

std::size_t worth_showing(const EnergyNode& node, const Weights& weights, double min_share) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    if (weights.share(node.children[i]) >= min_share) count = i + 1;
  }
  return count;
}

Unfolded unfold(const EnergyNode& root, const TreeLimits& limits) {
  const Weights weights(root);
  Unfolded unfolded;
  std::priority_queue<Candidate> waiting;
  std::size_t order = 0;
  std::size_t left = limits.lines;
  waiting.push({1, order++, &root, 0});
  while (!waiting.empty() && left > 0) {
    const Candidate next = waiting.top();
    waiting.pop();
    const std::vector<EnergyNode>& children = next.node->children;
    if (children.empty() || (limits.depth && next.depth >= *limits.depth)) continue;
    // Devices are always shown, even those without energy.
    const bool is_few = next.depth == 0 && children.size() <= std::min(left, kMaxDevices);
    std::size_t shown = is_few ? children.size() : worth_showing(*next.node, weights, limits.min_share);
    // A line "1 more" would not be shorter than the row that it replaces.
    if (shown > 0 && shown + 1 == children.size()) ++shown;
    if (shown > left || (shown < children.size() && shown + 1 > left)) shown = left - 1;
    if (shown == 0) continue;
    left -= std::min(left, shown + (shown < children.size() ? 1 : 0));
    unfolded[next.node] = shown;
    for (std::size_t i = 0; i < shown; ++i) {
      waiting.push({weights.share(children[i]), order++, &children[i], next.depth + 1});
    }
  }
  return unfolded;
}

EnergyNode sum_of_rest(std::span<const EnergyNode> rest) {
  EnergyNode sum;
  std::size_t rows = 0;
  for (const EnergyNode& node : rest) {
    rows += leaf_count(node);
    sum.sum.time_s += node.sum.time_s;
    if (node.sum.energy_j) sum.sum.energy_j = sum.sum.energy_j.value_or(0) + *node.sum.energy_j;
  }
  sum.name = std::to_string(rows) + " more";
  return sum;
}

void append(std::vector<TreeLine>& lines, const EnergyNode& node, const Unfolded& unfolded, std::vector<bool> is_last) {
  const auto known = unfolded.find(&node);
  if (known == unfolded.end()) return;
  const std::size_t shown = known->second;
  is_last.push_back(false);
  for (std::size_t i = 0; i < shown; ++i) {
    is_last.back() = i + 1 == node.children.size();
    const EnergyNode& child = node.children[i];
    const bool is_open = unfolded.contains(&child) || child.children.empty();
    lines.push_back({&child, is_last, is_open ? 0 : leaf_count(child), {}});
    append(lines, child, unfolded, is_last);
  }
  if (shown == node.children.size()) return;
  is_last.back() = true;
  lines.push_back({nullptr, is_last, 0, sum_of_rest(std::span(node.children).subspan(shown))});
}

}  // namespace

std::vector<TreeLine> tree_lines(const EnergyNode& root, const TreeLimits& limits) {
  std::vector<TreeLine> lines;
  append(lines, root, unfold(root, limits), {});
  return lines;
}

}  // namespace joulemap::report
