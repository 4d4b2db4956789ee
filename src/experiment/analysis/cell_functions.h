// SPDX-License-Identifier: Apache-2.0
//
// The functions of a cell: what each cost in the rows that tell it, on average, and why. Pure; seconds, joules.
#pragma once

#include <vector>

#include "experiment/analysis/experiment_table.h"
#include "model/experiment_data.h"
#include "model/function_result.h"

namespace joulemap::experiment {

// Those that drew the most first. The class of one is that of the most time in all rows; where a name told it in any of
// them, it is by the name. Energies are those of rows that show what `energy` compares.
std::vector<CellFunction> functions_of_cell(const ExperimentData& data, const CellRows& cell,
                                            const EnergyBasis& energy);

}  // namespace joulemap::experiment
