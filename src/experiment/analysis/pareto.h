// SPDX-License-Identifier: Apache-2.0
//
// Pareto-optimal cells over energy, time and the metrics, each in its better direction. A bootstrap estimates the
// probability that a cell is on the front; it resamples whole rows, which preserves the correlation between the
// measures of a row. Only cells with the same levels of the factors that are not compared compete. Pure; the same seed
// gives the same bits for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "experiment/analysis/experiment_table.h"
#include "model/analysis_result.h"

namespace joulemap::experiment {

struct ParetoOptions {
  std::vector<std::size_t> factors;  // indices of the compared factors
  std::size_t resample_count = 2'000;
  std::uint64_t random_seed = 0;
  unsigned thread_count = 0;
};

// Sets of at least two cells; empty if fewer than two measures distinguish the cells.
std::vector<ParetoSet> find_pareto_sets(const ExperimentData& data, const ExperimentTable& table,
                                        const ParetoOptions& options);

// Association of energy and time: within each cell, and over the medians of all cells.
std::vector<Association> compute_associations(const ExperimentTable& table, unsigned threads);

}  // namespace joulemap::experiment
