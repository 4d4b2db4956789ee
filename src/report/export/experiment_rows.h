// SPDX-License-Identifier: Apache-2.0
//
// The single rows of an experiment as a table for programs: all of the plan, in its order, with all that is known of each
// and the codes of what speaks against it (docs/analysis.md). All digits; empty where nothing is known. Pure.
#pragma once

#include "model/analysis_result.h"
#include "model/experiment_data.h"
#include "report/text/text_table.h"

namespace joulemap::report {

TextTable exact_rows(const ExperimentData& data, const AnalysisResult& result);

}  // namespace joulemap::report
