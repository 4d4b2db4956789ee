// SPDX-License-Identifier: Apache-2.0
//
// Plots of an experiment as SVG: the same analysis gives the same bytes. Bars and violins by cell, energy against time
// with a third measure as bubble size, power by epoch. Empty if the experiment lacks the data. Pure; widths are those
// of the page.
#pragma once

#include <cstddef>
#include <string>

#include "model/analysis_result.h"
#include "model/experiment_data.h"

namespace joulemap::report {

// Means with intervals: one bar group per level of one factor, colours for the levels of the compared factor, one facet
// per combination of the other factors.
std::string cell_bars_svg(const AnalysisResult& result, std::size_t measure);

// One line per cell: each row as a dot, and the density around them. Values are deviations from the cell's median in
// percent, so that cells of different size are comparable.
std::string cell_violins_svg(const AnalysisResult& result, std::size_t measure);

// Energy against time by cell; the first metric that is compared sets the bubble size. Pareto-optimal cells have an
// outline.
std::string bubbles_svg(const AnalysisResult& result);

// Mean power of the first epoch beside that of the later epochs, by cell.
std::string epoch_power_svg(const AnalysisResult& result);

// Mean power of each epoch over run time, for one row of each cell, with lines at the ends of epochs; at most `most`
// cells.
std::string epoch_series_svg(const ExperimentData& data, const AnalysisResult& result, std::size_t most);

}  // namespace joulemap::report
