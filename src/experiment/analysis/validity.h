// SPDX-License-Identifier: Apache-2.0
//
// Validity flags, computed before any comparison. Flags of a cell: warm-up, drift, outliers, impossible energies,
// throttling, stolen time, insufficient cool-down and others. Flags of the experiment: order, pairing, statistical
// power of the repetitions. No row is dropped. docs/reference/diagnostics.md lists the codes. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "experiment/analysis/experiment_table.h"
#include "model/analysis_result.h"

namespace joulemap::experiment {

inline constexpr double kMaxUndisturbedTimeShare =
    0.01;  // share of time throttled or stolen above which a row is flagged
// Whether the power exceeds idle power by more than sensor noise: a row that starts at such a power started too early.
bool is_above_idle(double power_w, double idle_w);

// Flags of one cell. `measure_summaries`: as in AnalysisCell. `alpha`: level of the tests for change points and drift.
std::vector<AnalysisFlag> compute_cell_flags(const ExperimentData& data, const ExperimentTable& table,
                                             const CellRows& cell,
                                             const std::vector<std::optional<MeasureSummary>>& measure_summaries,
                                             double alpha);

// Flag codes for each row of the data: its energies, disturbances, outliers and the diagnostics of its measurement.
// `cells` is parallel to the table's cells.
std::vector<std::vector<std::string>> compute_row_flags(const ExperimentData& data, const ExperimentTable& table,
                                                        const std::vector<AnalysisCell>& cells);

// Flags of the experiment. Requires that `result` already has cell flags and adjusted comparisons.
std::vector<AnalysisFlag> experiment_flags(const ExperimentData& data, const ExperimentTable& table,
                                           const AnalysisResult& result);

}  // namespace joulemap::experiment
