// SPDX-License-Identifier: Apache-2.0
//
// The functions of an experiment's cells as tables: energy, time, calls, and why: the class of most of their time, and
// whether the ledger of the recordings or only the name tells it. Pure.
#pragma once

#include "model/analysis_result.h"
#include "report/text/text_table.h"

namespace joulemap::report {

// Of each cell and device those that drew the most; rounded. No rows where no row was traced.
TextTable functions_table(const AnalysisResult& result);
// Of one cell, for a terminal.
TextTable brief_functions(const AnalysisCell& cell);
// All that rows keep, all digits; empty where nothing is known.
TextTable exact_functions(const AnalysisResult& result);

}  // namespace joulemap::report
