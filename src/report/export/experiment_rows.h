// SPDX-License-Identifier: Apache-2.0
//
// The single rows of an experiment as a table for programs: all planned rows in plan order, with all known values and
// flag codes (docs/analysis.md). All digits; unknown values are empty. Pure.
#pragma once

#include "model/analysis_result.h"
#include "model/experiment_data.h"
#include "report/text/text_table.h"

namespace joulemap::report {

TextTable full_precision_rows_table(const ExperimentData& data, const AnalysisResult& result);

}  // namespace joulemap::report
