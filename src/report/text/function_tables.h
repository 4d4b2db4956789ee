// SPDX-License-Identifier: Apache-2.0
//
// Tables of the functions of an experiment's cells: energy, time, calls and cause. The cause is the class with the most
// time; a column shows whether it comes from the recordings' ledger or only from the name. Pure.
#pragma once

#include "model/analysis_result.h"
#include "report/text/text_table.h"

namespace joulemap::report {

// Functions with the most energy, per cell and device; rounded. Empty if no row was traced.
TextTable functions_table(const AnalysisResult& result);
// The functions of one cell, for a terminal.
TextTable cell_functions_table(const AnalysisCell& cell);
// All stored functions with all digits; unknown values are empty.
TextTable full_precision_functions_table(const AnalysisResult& result);

}  // namespace joulemap::report
