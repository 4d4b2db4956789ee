// SPDX-License-Identifier: Apache-2.0
//
// EnergyTree: the rows of a report as a tree: devices, phases, nested modules, operations. The root contains all
// attributed energy; idle and unattributed energy are separate nodes. Plain data, owned by the caller; joules and
// seconds.
//
// The sum of a branch includes its children; what the branch itself used is one of its leaves. Sums come from
// ReportResult::groups, whose intervals account for correlated errors. Reports without groups (steps, epochs) add up
// energies and have no interval for the sum.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/report_result.h"

namespace joulemap::report {

enum class SortBy { energy, time, power, count, name, order /* run order */ };

struct EnergyNode {
  std::string name;
  ReportRow sum;
  std::vector<EnergyNode> children;
};

struct TreeQuery {
  std::optional<SortBy> sort;  // default: energy; for steps and epochs run order
  std::string filter;          // only rows that contain it (scopes/path_tree.h)
};

EnergyNode energy_tree(const ReportResult& result, const TreeQuery& query);

// Whether the rows are steps or epochs: consecutive in time, each over all devices.
bool has_step_or_epoch_rows(const ReportResult& result);

// Nodes for idle and unattributed energy, in this order. Empty if energies are unknown.
std::vector<EnergyNode> idle_and_unattributed_nodes(const ReportResult& result);
// The same for the run without probing: excludes the idle energy during probing.
std::vector<EnergyNode> unattributed_nodes_without_probing(const ReportResult& result);
// Attributed, idle and unattributed energy, the denominator of shares.
std::optional<double> ledger_total_j(const ReportResult& result);

// Number of leaves below the node, or 1 for a leaf.
std::size_t leaf_count(const EnergyNode& node);

}  // namespace joulemap::report
