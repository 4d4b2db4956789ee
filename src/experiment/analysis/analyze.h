// SPDX-License-Identifier: Apache-2.0
//
// Analyzes the rows of an experiment: cells with intervals, validity flags, tests that fit the design, associations and
// the Pareto-optimal cells. Pure function: the same data and options give bit-identical results for any number of
// threads (docs/explanation/statistics.md).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/analysis_result.h"
#include "model/experiment_data.h"
#include "statistics/adjustment.h"

namespace joulemap::experiment {

struct AnalysisOptions {
  std::optional<double> significance_level;  // default: the experiment's alpha
  statistics::Adjustment adjustment = statistics::Adjustment::holm;
  std::vector<std::string> compared_factors;  // factors to compare; empty: those that the experiment compares
  std::vector<std::string> measure_names;     // names of the measures to analyze; empty: all
  std::size_t resample_count = 2'000;         // bootstrap resamples
  unsigned thread_count = 0;                  // 0: one per CPU
};

// Fails if the options name a factor or measure that the experiment lacks, or if no row is done.
Result<AnalysisResult> analyze(const ExperimentData& data, const AnalysisOptions& options);

}  // namespace joulemap::experiment
