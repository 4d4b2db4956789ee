// SPDX-License-Identifier: Apache-2.0
//
// Plots of an experiment as SVG, for `experiment analyze --plot` and --html. Each function returns an empty text if the
// experiment lacks the data. The same analysis gives the same bytes. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "model/analysis_result.h"
#include "model/experiment_data.h"

namespace joulemap::report {

// Means of the cells as bars with intervals. assign_factor_roles() chooses one factor for colours and one for groups of
// bars; each combination of levels of the other factors has a facet (a small plot of its own).
std::string cell_bars_svg(const AnalysisResult& result, std::size_t measure);

// One violin per cell: each row of the experiment as a dot, and their density. Values are deviations from the median of
// the cell in percent, so that cells with different means are comparable.
std::string cell_violins_svg(const AnalysisResult& result, std::size_t measure);

// Mean energy against mean time of each cell, on logarithmic axes. The bubble size shows the metric "accuracy", or else
// the first compared metric. Cells on the Pareto front have an outline.
std::string bubbles_svg(const AnalysisResult& result);

// Mean power of the first epoch next to that of the later epochs, for each cell.
std::string epoch_power_svg(const AnalysisResult& result);

// Mean power of each epoch against time, for the first row with epochs of each cell. At most `max_cells` cells.
std::string epoch_series_svg(const ExperimentData& data, const AnalysisResult& result, std::size_t max_cells);

// The metric that tradeoff_svg() shows: "accuracy", or else the first compared metric.
std::optional<std::size_t> tradeoff_metric(const AnalysisResult& result);
// That metric against energy: one numbered point per cell, a list of the numbers, and the Pareto fronts of these two
// measures among cells that differ only in compared factors.
std::string tradeoff_svg(const AnalysisResult& result);

// The first completed row of a cell with power over time; null if there is none.
const ExperimentRow* find_row_with_power_series(const ExperimentData& data, const AnalysisCell& cell);
// Power, utilisation and temperature over time of one run of each of these cells, with epochs. `cells`: indices into
// AnalysisResult::cells.
std::string run_timelines_svg(const ExperimentData& data, const AnalysisResult& result,
                              std::span<const std::size_t> cells);

}  // namespace joulemap::report
