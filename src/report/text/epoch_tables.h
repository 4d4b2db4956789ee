// SPDX-License-Identifier: Apache-2.0
//
// Tables of the epochs of an experiment, by cell: energy, time, power, and the gauges and metrics that the epochs have.
// Pure.
#pragma once

#include "model/analysis_result.h"
#include "report/text/text_table.h"

namespace joulemap::report {

// Rounded, for people: of cells with many epochs the first, the last and some between. Empty if no row has epochs.
TextTable epoch_means_table(const AnalysisResult& result);
// The same for a terminal: without time, memory utilisation, and metrics other than "accuracy" or the first one.
TextTable short_epochs_table(const AnalysisResult& result);
// All epochs with all digits; unknown values are empty.
TextTable full_precision_epochs_table(const AnalysisResult& result);

}  // namespace joulemap::report
