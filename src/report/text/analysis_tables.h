// SPDX-License-Identifier: Apache-2.0
//
// The tables of an analysis, for all formats: cells with intervals, comparisons, epochs (the first one separately),
// Pareto fronts, associations of energy and time, and flags. Rounded tables are for people, exact ones for programs.
// Pure.
#pragma once

#include <string>

#include "model/analysis_result.h"
#include "report/text/text_table.h"

namespace joulemap::report {

TextTable cells_table(const AnalysisResult& result);
TextTable comparisons_table(const AnalysisResult& result);
TextTable verdicts_table(const AnalysisResult& result);
TextTable epochs_table(const AnalysisResult& result);  // empty if no row has epochs
TextTable pareto_table(const AnalysisResult& result);
TextTable associations_table(const AnalysisResult& result);
TextTable flags_table(const AnalysisResult& result);  // of the experiment, then of the cells

// All digits; unknown values are empty.
TextTable full_precision_cells_table(const AnalysisResult& result);  // one row per cell and measure
TextTable full_precision_comparisons_table(const AnalysisResult& result);

// "inference, gnmt, PyTorch": the levels of a cell. The names of the factors are left out: column headings show them.
std::string short_levels_text(const AnalysisResult& result, const std::vector<std::optional<std::size_t>>& levels);
std::string short_levels_text(const AnalysisResult& result, const std::vector<std::size_t>& levels);

}  // namespace joulemap::report
