// SPDX-License-Identifier: Apache-2.0
//
// Mean time, count and energy of each function of a cell, over the rows that report it, with its cause. Pure; seconds,
// joules.
#pragma once

#include <vector>

#include "experiment/analysis/experiment_table.h"
#include "model/experiment_data.h"
#include "model/function_result.h"

namespace joulemap::experiment {

// Sorted by mean energy, descending. The cause class of a function is the one with the most time over all rows. Its
// basis is CauseBasis::name if any row derived that class from the name. Only rows for which
// has_domains_of_basis(energy, row) holds contribute energy.
std::vector<CellFunctionMean> compute_function_means(const ExperimentData& data, const CellRows& cell,
                                                     const EnergyBasis& energy);

}  // namespace joulemap::experiment
