// SPDX-License-Identifier: Apache-2.0
//
// Plots of an experiment as SVG: the same analysis gives the same bytes. Bars and violins by cell, energy against time with
// a third measure as the size of bubbles, power from epoch to epoch. Empty where the experiment does not hold what a plot
// shows. Pure; widths are those of the page.
#pragma once

#include <cstddef>
#include <string>

#include "model/analysis_result.h"
#include "model/experiment_data.h"

namespace joulemap::report {

// Means with their intervals: a group of bars for each level of one factor, colours for the levels of the compared one, a
// facet for each combination of the others.
std::string cell_bars_svg(const AnalysisResult& result, std::size_t measure);

// Every row a dot, their density around: one line for each cell. Each is drawn in percent of its own median, so that cells
// of different size can be seen beside each other.
std::string cell_violins_svg(const AnalysisResult& result, std::size_t measure);

// Energy against time by cell; the first weighed metric is the size of the bubble. What is on the Pareto front has a rim.
std::string bubbles_svg(const AnalysisResult& result);

// Mean power of the first epoch beside that of the later ones, by cell.
std::string epoch_power_svg(const AnalysisResult& result);

// Mean power of each epoch over the time of the run, one row of each cell, lines where epochs end; `most` cells.
std::string epoch_series_svg(const ExperimentData& data, const AnalysisResult& result, std::size_t most);

}  // namespace joulemap::report
