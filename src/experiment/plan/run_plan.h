// SPDX-License-Identifier: Apache-2.0
//
// The rows of an experiment in run order: every combination of levels that is not excluded, times the repetitions. The
// same plan and seed give the same order on every machine. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "experiment/plan/experiment_spec.h"

namespace joulemap::experiment {

struct PlannedRow {
  std::size_t cell_index = 0;  // index of the combination of levels in list_planned_cells(spec)
  std::size_t block_number = 0;
  std::vector<std::size_t> levels;
};

// Cells in lexicographic order: the last factor changes fastest.
std::vector<std::vector<std::size_t>> list_planned_cells(const ExperimentSpec& spec);

// Fails if every cell is excluded or if the number of rows exceeds the limit.
Result<std::vector<PlannedRow>> plan_rows(const ExperimentSpec& spec);

}  // namespace joulemap::experiment
