// SPDX-License-Identifier: Apache-2.0
//
// Rank correlations of each energy (total, and of each kind of domain) with time, power and metrics, over the cells of
// each level of the compared factors: "with PyTorch, the GPU's energy follows its time". A cell counts once, by its
// medians, so that repetitions do not pass for independent values. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "experiment/analysis/experiment_table.h"
#include "model/analysis_result.h"

namespace joulemap::experiment {

// Correlations over all cells, then for each level of `factors`. Omits those of fewer than four cells or without spread.
std::vector<LevelCorrelation> level_correlations(const ExperimentData& data, const ExperimentTable& table,
                                                 const std::vector<std::size_t>& factors);

}  // namespace joulemap::experiment
