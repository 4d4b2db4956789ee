// SPDX-License-Identifier: Apache-2.0
#include "report/text/energy_tree.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "model/background_row.h"
#include "report/text/kernel_names.h"
#include "scopes/path_tree.h"

namespace joulemap::report {
namespace {

using ScopePath = std::vector<std::string>;
using SortKey = std::pair<std::string, ScopePath>;  // (device, path of the branch)

// Adds a row to a sum. Adds the bounds of intervals, as for fully correlated errors.
void add_row_to_sum(ReportRow& sum, const ReportRow& part) {
  const auto add = [](std::optional<double>& target_sum, const std::optional<double>& value) {
    if (value) target_sum = target_sum.value_or(0) + *value;
  };
  if (part.count) sum.count = sum.count.value_or(0) + *part.count;
  sum.time_s += part.time_s;
  add(sum.energy_j, part.energy_j);
  add(sum.low_j, part.low_j);
  add(sum.high_j, part.high_j);
  add(sum.dynamic_j, part.dynamic_j);
  if (sum.basis.empty()) sum.basis = part.basis;
  sum.power_w = sum.energy_j && sum.time_s > 0 ? std::optional(*sum.energy_j / sum.time_s) : std::nullopt;
}

// Maximum columns of a kernel name at the level "stack".
constexpr std::size_t kKernelNameWidth = 40;

// A branch under construction, with children by name.
struct TreeBranch {
  ReportRow sum;
  bool is_sum_of_group = false;      // `summed_row` comes from ReportResult::groups
  std::optional<ReportRow> own_row;  // row of the branch itself, without its children
  std::map<std::string, TreeBranch> child_branches;
};

TreeBranch& find_or_add_branch(TreeBranch& device, const ScopePath& path) {
  TreeBranch* branch = &device;
  for (const std::string& element : path) branch = &branch->child_branches[element];
  return *branch;
}

double sort_value_of_node(const EnergyNode& node, SortBy sort) {
  switch (sort) {
    case SortBy::time:
      return node.summed_row.time_s;
    case SortBy::power:
      return node.summed_row.power_w.value_or(0);
    case SortBy::count:
      return static_cast<double>(node.summed_row.count.value_or(0));
    case SortBy::energy:
    case SortBy::name:
    case SortBy::order:
      return node.summed_row.energy_j.value_or(0);
  }
  return 0;
}

void sort_children(EnergyNode& node, SortBy sort) {
  std::stable_sort(node.children.begin(), node.children.end(), [&](const EnergyNode& a, const EnergyNode& b) {
    if (sort == SortBy::order) return false;
    if (sort == SortBy::name) return a.name < b.name;
    const auto key = [&](const EnergyNode& child) {
      return std::tuple(sort_value_of_node(child, sort), child.summed_row.time_s);
    };
    return key(a) > key(b);
  });
}

EnergyNode branch_to_node(std::string name, TreeBranch branch, SortBy sort) {
  const bool has_display_name = branch.own_row && !branch.own_row->display_name.empty();
  EnergyNode node{has_display_name ? branch.own_row->display_name : std::move(name), {}, {}};
  for (auto& [child_name, child] : branch.child_branches)
    node.children.push_back(branch_to_node(child_name, std::move(child), sort));
  if (!branch.is_sum_of_group) {
    branch.sum = branch.own_row.value_or(ReportRow{});
    for (const EnergyNode& child : node.children) add_row_to_sum(branch.sum, child.summed_row);
  }
  if (branch.own_row && !node.children.empty()) node.children.push_back({"(self)", *branch.own_row, {}});
  node.summed_row = node.children.empty() && branch.own_row ? *branch.own_row : std::move(branch.sum);
  // Merges a branch with its only child if the branch has no own energy.
  if (node.children.size() == 1 && !branch.own_row) {
    EnergyNode only_child = std::move(node.children.front());
    only_child.name = scopes::join_branch_names(node.name, only_child.name);
    return only_child;
  }
  sort_children(node, sort);
  return node;
}

}  // namespace

EnergyNode energy_tree(const ReportResult& result, const TreeQuery& query) {
  std::map<std::string, TreeBranch> devices;
  for (const ReportRow& group : result.groups) {
    TreeBranch& branch = find_or_add_branch(devices[group.device], group.path);
    add_row_to_sum(branch.sum, group);
    branch.sum.basis = group.basis;
    branch.is_sum_of_group = true;
  }
  for (const ReportRow& row : result.rows) {
    if (!scopes::path_matches_filter(row.path, row.device, query.name_filter)) continue;
    const ScopePath path = scopes::tree_path(row.path, result.by);
    TreeBranch& branch = find_or_add_branch(devices[row.device], path);
    if (!branch.own_row) branch.own_row.emplace();
    if (result.by == "kernel") branch.own_row->display_name = row.display_name;
    // The last element of a path at level "stack" is a kernel, unless tree_path() has split it as a
    // module name.
    if (result.by == "stack" && path.back() == row.path.back())
      branch.own_row->display_name = brief_kernel_name(row.display_name, kKernelNameWidth);
    add_row_to_sum(*branch.own_row, row);
  }
  EnergyNode root;
  if (has_step_or_epoch_rows(result)) {
    for (const ReportRow& row : result.rows) {
      if (scopes::path_matches_filter(row.path, row.device, query.name_filter))
        root.children.push_back({row.display_name, row, {}});
    }
    devices.clear();
  }
  for (auto& [device, branch] : devices) {
    root.children.push_back(branch_to_node(device, std::move(branch), query.sort_by.value_or(SortBy::energy)));
  }
  for (const EnergyNode& child : root.children) {
    if (child.summed_row.energy_j)
      root.summed_row.energy_j = root.summed_row.energy_j.value_or(0) + *child.summed_row.energy_j;
  }
  sort_children(root, query.sort_by.value_or(has_step_or_epoch_rows(result) ? SortBy::order : SortBy::energy));
  return root;
}

bool has_step_or_epoch_rows(const ReportResult& result) { return result.by == "step" || result.by == "epoch"; }

namespace {

std::vector<EnergyNode> make_outside_row_nodes(const EnergyOutsideRows& energy, double attributed_j) {
  std::vector<EnergyNode> out;
  for (const auto& [name, energy_j] :
       {std::pair("idle", energy.idle_j), std::pair("not attributed", energy.unattributed_j)}) {
    if (!energy_j) continue;
    out.push_back({name, {}, {}});
    // Smaller amounts are rounding errors of the sums and become 0.
    out.back().summed_row.energy_j = std::abs(*energy_j) > 1e-7 * attributed_j ? *energy_j : 0;
  }
  return out;
}

}  // namespace

std::vector<EnergyNode> idle_and_unattributed_nodes(const ReportResult& result) {
  return make_outside_row_nodes({result.idle_j, result.unattributed_j}, result.attributed_j.value_or(0));
}

std::vector<EnergyNode> idle_and_unattributed_without_probing(const ReportResult& result) {
  return make_outside_row_nodes(energy_outside_rows_without_probing(result), result.attributed_j.value_or(0));
}

std::optional<double> ledger_total_j(const ReportResult& result) {
  if (!result.attributed_j) return std::nullopt;
  return *result.attributed_j + result.idle_j.value_or(0) + result.unattributed_j.value_or(0);
}

std::size_t count_leaves(const EnergyNode& node) {
  if (node.children.empty()) return 1;
  std::size_t sum = 0;
  for (const EnergyNode& child : node.children) sum += count_leaves(child);
  return sum;
}

}  // namespace joulemap::report
