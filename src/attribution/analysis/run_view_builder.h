// SPDX-License-Identifier: Apache-2.0
//
// Builds the RunView that pages and plots show: all levels at once, in little more than the time of one report.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attribution/analysis/recording_analysis.h"
#include "base/result.h"
#include "model/run_view.h"

namespace joulemap::attribution {

struct ViewQuery {
  AttributionMode mode = AttributionMode::regress;
  CommandTimeRange time_range = {};
  std::optional<std::vector<KernelPower>> library = {};  // as in ReportQuery
  bool includes_branch_sums = false;                     // sums over branches of the levels' trees (scopes/path_tree.h)
  // Levels to build. Pages show all of them; a plot needs only one, which takes less time.
  std::vector<RowLevel> levels = {RowLevel::phase,    RowLevel::layer,  RowLevel::module, RowLevel::op, RowLevel::tensor,
                                  RowLevel::function, RowLevel::region, RowLevel::kernel, RowLevel::stack};
  ViewLimits limits = {};
  std::vector<DomainClass> excluded_domains = {};  // as in ReportQuery
  ProgressCallback on_progress = {};
};

// Fails as build_report() does.
Result<RunView> build_run_view(std::span<const std::string> paths, const ViewQuery& query = {});

}  // namespace joulemap::attribution
