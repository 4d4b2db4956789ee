// SPDX-License-Identifier: Apache-2.0
#include "report/text/energy_tree.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "model/activity.h"
#include "report/text/kernel_names.h"
#include "scopes/path_tree.h"

namespace joulemap::report {
namespace {

using Path = std::vector<std::string>;
using Key = std::pair<std::string, Path>;  // (device, path of the branch)

// Adds a row to a sum. Adds the bounds of intervals, as for fully correlated errors.
void add_up(ReportRow& sum, const ReportRow& part) {
  const auto add = [](std::optional<double>& to, const std::optional<double>& value) {
    if (value) to = to.value_or(0) + *value;
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
constexpr std::size_t kKernelColumns = 40;

// A branch under construction, with children by name.
struct Branch {
  ReportRow sum;
  bool is_group_sum = false;     // `sum` comes from ReportResult::groups
  std::optional<ReportRow> own;  // row of the branch itself, without its children
  std::map<std::string, Branch> children;
};

Branch& branch_at(Branch& device, const Path& path) {
  Branch* at = &device;
  for (const std::string& element : path) at = &at->children[element];
  return *at;
}

double sort_value(const EnergyNode& node, SortBy sort) {
  switch (sort) {
    case SortBy::time:
      return node.sum.time_s;
    case SortBy::power:
      return node.sum.power_w.value_or(0);
    case SortBy::count:
      return static_cast<double>(node.sum.count.value_or(0));
    case SortBy::energy:
    case SortBy::name:
    case SortBy::order:
      return node.sum.energy_j.value_or(0);
  }
  return 0;
}

void sort_children(EnergyNode& node, SortBy sort) {
  std::stable_sort(node.children.begin(), node.children.end(), [&](const EnergyNode& a, const EnergyNode& b) {
    if (sort == SortBy::order) return false;
    if (sort == SortBy::name) return a.name < b.name;
    const auto key = [&](const EnergyNode& child) { return std::tuple(sort_value(child, sort), child.sum.time_s); };
    return key(a) > key(b);
  });
}

EnergyNode finished(std::string name, Branch branch, SortBy sort) {
  const bool is_renamed = branch.own && !branch.own->display_name.empty();
  EnergyNode node{is_renamed ? branch.own->display_name : std::move(name), {}, {}};
  for (auto& [child_name, child] : branch.children)
    node.children.push_back(finished(child_name, std::move(child), sort));
  if (!branch.is_group_sum) {
    branch.sum = branch.own.value_or(ReportRow{});
    for (const EnergyNode& child : node.children) add_up(branch.sum, child.sum);
  }
  if (branch.own && !node.children.empty()) node.children.push_back({"(self)", *branch.own, {}});
  node.sum = node.children.empty() && branch.own ? *branch.own : std::move(branch.sum);
  // A branch without energy of its own and with a single child becomes one node with it.
  if (node.children.size() == 1 && !branch.own) {
    EnergyNode only = std::move(node.children.front());
    only.name = scopes::join_branch_names(node.name, only.name);
    return only;
  }
  sort_children(node, sort);
  return node;
}

}  // namespace

EnergyNode energy_tree(const ReportResult& result, const TreeQuery& query) {
  std::map<std::string, Branch> devices;
  for (const ReportRow& group : result.groups) {
    Branch& branch = branch_at(devices[group.device], group.path);
    add_up(branch.sum, group);
    branch.sum.basis = group.basis;
    branch.is_group_sum = true;
  }
  for (const ReportRow& row : result.rows) {
    if (!scopes::path_matches(row.path, row.device, query.filter)) continue;
    const Path path = scopes::tree_path(row.path, result.by);
    Branch& branch = branch_at(devices[row.device], path);
    if (!branch.own) branch.own.emplace();
    if (result.by == "kernel") branch.own->display_name = row.display_name;
    // The last element of a path at level "stack" is a kernel, unless tree_path() has split it as a module name.
    if (result.by == "stack" && path.back() == row.path.back())
      branch.own->display_name = brief_kernel_name(row.display_name, kKernelColumns);
    add_up(*branch.own, row);
  }
  EnergyNode root;
  if (has_step_or_epoch_rows(result)) {
    for (const ReportRow& row : result.rows) {
      if (scopes::path_matches(row.path, row.device, query.filter))
        root.children.push_back({row.display_name, row, {}});
    }
    devices.clear();
  }
  for (auto& [device, branch] : devices) {
    root.children.push_back(finished(device, std::move(branch), query.sort.value_or(SortBy::energy)));
  }
  for (const EnergyNode& child : root.children) {
    if (child.sum.energy_j) root.sum.energy_j = root.sum.energy_j.value_or(0) + *child.sum.energy_j;
  }
  sort_children(root, query.sort.value_or(has_step_or_epoch_rows(result) ? SortBy::order : SortBy::energy));
  return root;
}

bool has_step_or_epoch_rows(const ReportResult& result) { return result.by == "step" || result.by == "epoch"; }

std::vector<EnergyNode> idle_and_unattributed_nodes(const ReportResult& result) {
  std::vector<EnergyNode> out;
  for (const auto& [name, energy_j] :
       {std::pair("idle", result.idle_j), std::pair("not attributed", result.unattributed_j)}) {
    if (!energy_j) continue;
    out.push_back({name, {}, {}});
    // Smaller amounts are rounding errors of the sums and become 0.
    out.back().sum.energy_j = std::abs(*energy_j) > 1e-7 * result.attributed_j.value_or(0) ? *energy_j : 0;
  }
  return out;
}

std::vector<EnergyNode> unattributed_nodes_without_probing(const ReportResult& result) {
  std::vector<EnergyNode> out = idle_and_unattributed_nodes(result);
  if (!result.probe || !result.probe->energy_j || out.empty()) return out;
  double probed_j = 0;
  for (const ReportRow& row : result.rows) {
    if (!row.path.empty() && row.path.front() == kProbeMode) probed_j += row.energy_j.value_or(0);
  }
  double& idle_j = *out.front().sum.energy_j;
  idle_j = std::max(idle_j - std::max(*result.probe->energy_j - probed_j, 0.0), 0.0);
  return out;
}

std::optional<double> ledger_total_j(const ReportResult& result) {
  if (!result.attributed_j) return std::nullopt;
  return *result.attributed_j + result.idle_j.value_or(0) + result.unattributed_j.value_or(0);
}

std::size_t leaf_count(const EnergyNode& node) {
  if (node.children.empty()) return 1;
  std::size_t sum = 0;
  for (const EnergyNode& child : node.children) sum += leaf_count(child);
  return sum;
}

}  // namespace joulemap::report
