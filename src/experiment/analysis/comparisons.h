// SPDX-License-Identifier: Apache-2.0
//
// Tests between the levels of a factor, within each combination of the other factors' levels, for every measure. Blocked
// data are compared block by block (signed-rank, Friedman). Data without blocks get both the paired test, by the number of
// the repetition, and the unpaired one (Mann-Whitney, Kruskal-Wallis), as two comparisons: a reader sees what the pairing
// is worth. Tests of one factor and one pairing are a family. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "experiment/analysis/experiment_table.h"
#include "model/analysis_result.h"
#include "statistics/adjustment.h"

namespace joulemap::experiment {

struct ComparisonOptions {
  double alpha = 0.05;
  statistics::Adjustment adjustment = statistics::Adjustment::holm;
  std::vector<std::size_t> factors;
  unsigned threads = 0;
};

// Without verdicts.
std::vector<Comparison> compare_levels(const ExperimentData& data, const ExperimentTable& table,
                                       const ComparisonOptions& options);

}  // namespace joulemap::experiment
