// SPDX-License-Identifier: Apache-2.0
//
// CellGroup: the cells of one combination of the other factors' levels, which a comparison of a factor's levels is made
// of. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "experiment/analysis/experiment_table.h"
#include "model/experiment_data.h"

namespace joulemap::experiment {

// The cells that differ only in the level of one factor.
struct CellGroup {
  std::size_t factor = 0;
  std::vector<std::optional<std::size_t>> fixed_levels;
  std::vector<std::optional<std::size_t>> cells;  // index of the cell of each level of the factor
};

// All groups of a factor, in the order of the levels.
std::vector<CellGroup> group_cells_by_other_factors(const ExperimentData& data, const ExperimentTable& table,
                                                    std::size_t factor);

// One list per cell, all of equal length: the values of the blocks that all cells have.
std::vector<std::vector<double>> values_in_common_blocks(const ExperimentData& data, const ExperimentTable& table,
                                                         std::span<const std::size_t> cells, std::size_t measure);

}  // namespace joulemap::experiment
