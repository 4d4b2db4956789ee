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
  Mode mode = Mode::regress;
  SecondsWithin within = {};
  std::optional<std::vector<KernelPower>> library = {};  // as in ReportQuery
  bool groups = false;                                   // sums over branches of the levels' trees (model/path_tree.h)
  // Levels to build; a plot needs one, and others cost nothing.
  std::vector<Level> levels = {Level::phase,    Level::layer,  Level::op,     Level::tensor,
                               Level::function, Level::region, Level::kernel, Level::stack};
  ViewLimits limits = {};
  std::vector<DomainClass> without = {};  // as in ReportQuery
};

// Fails as build_report does.
Result<RunView> build_run_view(std::span<const std::string> paths, const ViewQuery& query = {});

}  // namespace joulemap::attribution
