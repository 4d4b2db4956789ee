// SPDX-License-Identifier: Apache-2.0
//
// Tests between the levels of a factor, within each combination of the other factors' levels, for every measure.
// Blocked data are compared block by block (signed-rank, Friedman). Data without blocks get two comparisons: the paired
// test, by repetition index, and the unpaired test (Mann-Whitney, Kruskal-Wallis). Both are reported so that the effect
// of pairing is visible. The tests of one factor and one pairing form a family for the adjustment. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "experiment/analysis/experiment_table.h"
#include "model/analysis_result.h"
#include "statistics/adjustment.h"

namespace joulemap::experiment {

struct ComparisonOptions {
  double significance_level = 0.05;
  statistics::Adjustment adjustment = statistics::Adjustment::holm;
  std::vector<std::size_t> factors;
  unsigned thread_count = 0;
};

// Returns the comparisons without verdict texts; verdict.h fills them in.
std::vector<Comparison> compare_levels(const ExperimentData& data, const ExperimentTable& table,
                                       const ComparisonOptions& options);

}  // namespace joulemap::experiment
