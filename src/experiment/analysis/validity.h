// SPDX-License-Identifier: Apache-2.0
//
// What speaks against the data, found before anything is compared: flags of a cell (warm-up, drift, outliers, energies that
// cannot be, throttling, stolen time, pauses that were too short ...) and of the whole experiment (order, pairing, what so
// few repetitions can show). Flags only: no row is dropped. The codes are listed in docs/analysis.md. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "experiment/analysis/experiment_table.h"
#include "model/analysis_result.h"

namespace joulemap::experiment {

// Of one cell. `spreads`: as in AnalysisCell. `alpha` is that of the tests for changes and drifts.
std::vector<AnalysisFlag> cell_flags(const ExperimentData& data, const ExperimentTable& table, const CellRows& cell,
                                     const std::vector<std::optional<Spread>>& spreads, double alpha);

// Of the experiment, when its cells are flagged and its comparisons adjusted.
std::vector<AnalysisFlag> experiment_flags(const ExperimentData& data, const ExperimentTable& table,
                                           const AnalysisResult& result);

}  // namespace joulemap::experiment
