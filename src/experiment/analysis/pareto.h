// SPDX-License-Identifier: Apache-2.0
//
// Which cells no other beats in everything: energy, time and the metrics, each in the direction in which it is better; and
// how likely a cell is to be among them, when its rows are drawn again (bootstrap of whole rows, so that what belongs
// together stays together). Cells are weighed against each other where the factors that are not compared agree. Pure; the
// same seed gives the same bits at any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "experiment/analysis/experiment_table.h"
#include "model/analysis_result.h"

namespace joulemap::experiment {

struct ParetoOptions {
  std::vector<std::size_t> factors;  // compared ones
  std::size_t resamples = 2'000;
  std::uint64_t seed = 0;
  unsigned threads = 0;
};

// Sets of at least two cells; none where fewer than two measures tell them apart.
std::vector<ParetoSet> pareto_sets(const ExperimentData& data, const ExperimentTable& table,
                                   const ParetoOptions& options);

// Energy against time: in each cell, and over the medians of all.
std::vector<Association> associations_of(const ExperimentTable& table, unsigned threads);

}  // namespace joulemap::experiment
