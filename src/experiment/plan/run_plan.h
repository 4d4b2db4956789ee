// SPDX-License-Identifier: Apache-2.0
//
// The rows of an experiment in the order in which they shall run: every combination of levels that is not excluded, as often
// as it is repeated. The same plan and seed give the same order on every machine. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "experiment/plan/experiment_spec.h"

namespace joulemap::experiment {

struct PlannedRow {
  std::size_t cell = 0;  // which combination, in the order of cells_of
  std::size_t block = 0;
  std::vector<std::size_t> levels;
};

// The last factor changes fastest.
std::vector<std::vector<std::size_t>> cells_of(const ExperimentSpec& spec);

// Fails when everything is excluded, or when there would be more rows than anybody can run.
Result<std::vector<PlannedRow>> plan_rows(const ExperimentSpec& spec);

}  // namespace joulemap::experiment
