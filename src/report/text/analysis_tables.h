// SPDX-License-Identifier: Apache-2.0
//
// The tables of an analysis, for all formats: effects over all combinations, cells with intervals, comparisons, epochs,
// Pareto fronts, correlation of energy and time, and flags. Tables for people are rounded; full_precision tables are for
// programs. Pure.
#pragma once

#include <string>

#include "model/analysis_result.h"
#include "report/text/text_table.h"

namespace joulemap::report {

TextTable cells_table(const AnalysisResult& result);
TextTable main_effects_table(const AnalysisResult& result);  // empty if each comparison has only one combination
TextTable interactions_table(const AnalysisResult& result);
TextTable comparisons_table(const AnalysisResult& result);
TextTable verdicts_table(const AnalysisResult& result);
TextTable epochs_table(const AnalysisResult& result);  // empty if no row has epochs
TextTable pareto_table(const AnalysisResult& result);
TextTable associations_table(const AnalysisResult& result);
TextTable correlations_table(const AnalysisResult& result);
TextTable analysis_flags_table(const AnalysisResult& result);  // flags of the experiment, then those of the cells

// Tables for programs: numbers have all digits, unknown values are empty.
TextTable full_precision_cells_table(const AnalysisResult& result);  // one row per cell and measure
TextTable full_precision_comparisons_table(const AnalysisResult& result);
TextTable full_precision_effects_table(const AnalysisResult& result);  // main effects, then interactions

// The levels of a cell without the names of the factors: "inference, gnmt, PyTorch". Skips factors without a level.
std::string short_levels_text(const AnalysisResult& result, const std::vector<std::optional<std::size_t>>& levels);
std::string short_levels_text(const AnalysisResult& result, const std::vector<std::size_t>& levels);

}  // namespace joulemap::report
