// SPDX-License-Identifier: Apache-2.0
//
// The plots of `experiment analyze --plot`: chooses cells by their levels and draws one SVG. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/analysis_result.h"
#include "model/experiment_data.h"

namespace joulemap::cli {

// Names of the plots, for the check of the option: "timeline" is one run of each chosen cell over time, "tradeoff" a
// metric against energy, the others those of the page.
std::vector<std::string> analysis_plot_names();

// Finds the cell that a text such as "framework=pytorch,batch=64" describes. Factors with one level may be left out.
// Fails if a factor or level is unknown, or if no or more than one cell matches.
Result<std::size_t> find_described_cell(const AnalysisResult& result, std::string_view text);

// `cells`: texts for find_described_cell(), only for "timeline"; empty: the first two cells with power over time. Fails
// if the experiment lacks the data of the plot.
Result<std::string> analysis_plot_svg(std::string_view plot, const ExperimentData& data, const AnalysisResult& result,
                                      const std::vector<std::string>& cells);

}  // namespace joulemap::cli
