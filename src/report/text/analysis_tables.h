// SPDX-License-Identifier: Apache-2.0
//
// The tables of an analysis, for all formats: cells with their intervals, comparisons, epochs with the first apart, what no
// other cell beats, how energy goes with time, and flags. The rounded ones are for people, the exact ones for programs.
// Pure.
#pragma once

#include <string>

#include "model/analysis_result.h"
#include "report/text/text_table.h"

namespace joulemap::report {

TextTable cells_table(const AnalysisResult& result);
TextTable comparisons_table(const AnalysisResult& result);
TextTable verdicts_table(const AnalysisResult& result);
TextTable epochs_table(const AnalysisResult& result);  // no rows where no row tells epochs
TextTable pareto_table(const AnalysisResult& result);
TextTable associations_table(const AnalysisResult& result);
TextTable flags_table(const AnalysisResult& result);  // of the experiment, then of cells

// All digits; empty where nothing is known.
TextTable exact_cells(const AnalysisResult& result);  // a row for each cell and measure
TextTable exact_comparisons(const AnalysisResult& result);

// "inference, gnmt, PyTorch": levels alone, as columns say what they are of.
std::string short_levels(const AnalysisResult& result, const std::vector<std::optional<std::size_t>>& levels);
std::string short_levels(const AnalysisResult& result, const std::vector<std::size_t>& levels);

}  // namespace joulemap::report
