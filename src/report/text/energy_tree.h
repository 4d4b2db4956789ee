// SPDX-License-Identifier: Apache-2.0
//
// The rows of a report as a tree: devices, phases, nested modules, operations. The root is the sum of the attributed
// energy; idle and unattributed energy are separate nodes. Plain data, owned by the caller; joules and seconds.
//
// The sum of a branch includes its children; the energy of the branch itself is a leaf named "(self)". Sums come from
// ReportResult::groups, whose intervals account for correlated errors. Without groups, energies are added, and so are
// the bounds of their intervals.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/report_result.h"

namespace joulemap::report {

enum class SortBy { energy, time, power, count, name, order /* as in the report */ };

struct EnergyNode {
  std::string name;
  ReportRow summed_row;
  std::vector<EnergyNode> children;
};

struct TreeQuery {
  std::optional<SortBy> sort_by;  // none: by energy; steps and epochs in the order of the run
  std::string name_filter;        // only rows that match it (scopes/path_tree.h)
};

// `result.groups` must have been computed with the same filter, because their sums are not filtered here.
EnergyNode energy_tree(const ReportResult& result, const TreeQuery& query);

// Whether the rows are steps or epochs. Each is a sum over all devices, and they follow each other in time.
bool has_step_or_epoch_rows(const ReportResult& result);

// Nodes for idle and unattributed energy, in this order. Empty if energies are unknown.
std::vector<EnergyNode> idle_and_unattributed_nodes(const ReportResult& result);
// The same nodes for the run without probing: excludes the idle energy of the time of probing.
std::vector<EnergyNode> idle_and_unattributed_without_probing(const ReportResult& result);
// Sum of attributed, idle and unattributed energy, to which shares relate; none if energies are unknown.
std::optional<double> ledger_total_j(const ReportResult& result);

// Number of leaves below the node, or 1 for a leaf.
std::size_t count_leaves(const EnergyNode& node);

}  // namespace joulemap::report
