// SPDX-License-Identifier: Apache-2.0
//
// `experiment analyze --csv-rows`: all planned rows of an experiment in plan order, with their values and flag codes
// (docs/reference/diagnostics.md), as a table for programs. Numbers have all digits; unknown values are empty. Pure.
#pragma once

#include "model/analysis_result.h"
#include "model/experiment_data.h"
#include "report/text/text_table.h"

namespace joulemap::report {

TextTable full_precision_rows_table(const ExperimentData& data, const AnalysisResult& result);

}  // namespace joulemap::report
