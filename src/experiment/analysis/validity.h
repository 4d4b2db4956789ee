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

inline constexpr double kDisturbedShare = 0.01;  // of the time: throttled, stolen
// More than noise of sensors: a row that begins at such a power began too early.
bool is_above_idle(double power_w, double idle_w);

// Of one cell. `spreads`: as in AnalysisCell. `alpha` is that of the tests for changes and drifts.
std::vector<AnalysisFlag> cell_flags(const ExperimentData& data, const ExperimentTable& table, const CellRows& cell,
                                     const std::vector<std::optional<Spread>>& spreads, double alpha);

// Of each row of the data what is told of it alone, by code: its energies, disturbances and outliers, what its measurement
// had to say. `cells` as in the table.
std::vector<std::vector<std::string>> row_flags(const ExperimentData& data, const ExperimentTable& table,
                                                const std::vector<AnalysisCell>& cells);

// Of the experiment, when its cells are flagged and its comparisons adjusted.
std::vector<AnalysisFlag> experiment_flags(const ExperimentData& data, const ExperimentTable& table,
                                           const AnalysisResult& result);

}  // namespace joulemap::experiment
