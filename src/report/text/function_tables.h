// SPDX-License-Identifier: Apache-2.0
//
// Tables of functions by cell of an experiment: energy, own and cumulative time, calls and cause. The cause is the class
// with the most time; a column shows whether it was inferred from the recorded kernels and calls ("ledger") or from the
// name. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "model/analysis_result.h"
#include "report/text/text_table.h"

namespace joulemap::report {

// The functions with the most energy of each cell and device, rounded. Empty if no row was traced.
TextTable functions_table(const AnalysisResult& result);
// The functions with the most energy of one cell and device, at most `max_functions`, for a terminal.
TextTable costliest_functions_table(const AnalysisCell& cell, std::size_t max_functions);
// Title of these tables, which states by what functions are ordered: by own time if none has an energy.
std::string functions_title(const AnalysisResult& result);
// All functions of the result, with all digits; unknown values are empty.
TextTable full_precision_functions_table(const AnalysisResult& result);

}  // namespace joulemap::report
