// SPDX-License-Identifier: Apache-2.0
//
// EnergyTree: the rows of a report as branches and leaves: devices, then phases, modules within modules, operations.
// The tree's root is all that is somebody's; what is not (idle, not attributed) stands beside it. Plain data, owned by
// the caller; joules and seconds.
//
// A branch's sums hold all that lies in it, and what it did itself is one of its leaves. Sums come from
// ReportResult::groups, whose intervals know how errors hang together; where the report has none (steps, epochs)
// energies are added up and how sure the sum is is left open.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/report_result.h"

namespace joulemap::report {

enum class SortBy { energy, time, power, count, name, order /* as they ran */ };

struct EnergyNode {
  std::string name;
  ReportRow sum;
  std::vector<EnergyNode> children;
};

struct TreeQuery {
  std::optional<SortBy> sort;  // by energy, if nothing else is said; steps as they ran
  std::string filter;          // only rows that hold it (model/path_tree.h)
};

EnergyNode energy_tree(const ReportResult& result, const TreeQuery& query);

// Steps or epochs: rows that follow one another, of all devices together.
bool is_sequence(const ReportResult& result);

// What is drawn while nothing runs, and what is nobody's; in this order. Nothing where energies are not known.
std::vector<EnergyNode> nobodys(const ReportResult& result);
// The same of the run without probing: what was idle meanwhile is no part of it.
std::vector<EnergyNode> nobodys_without_probing(const ReportResult& result);
// Both together: what shares are shares of.
std::optional<double> energy_in_ledger(const ReportResult& result);

// How many rows lie in it.
std::size_t leaves_of(const EnergyNode& node);

}  // namespace joulemap::report
