// SPDX-License-Identifier: Apache-2.0
//
// From the rows of an experiment to what they show: cells with intervals, flags of what speaks against the data, tests that
// fit the design, associations, and the cells that no other beats. A pure function: the same data and options give the
// same result to the last bit, however many threads share the work (docs/analysis.md).
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
  std::optional<double> alpha;  // else the experiment's
  statistics::Adjustment adjustment = statistics::Adjustment::holm;
  std::vector<std::string> factors;   // to be compared; none: those that the experiment compares
  std::vector<std::string> measures;  // none: all
  std::size_t resamples = 2'000;      // of bootstraps
  unsigned threads = 0;               // 0: as the machine has CPUs
};

// Fails when options name what the experiment does not have, or no row is done.
Result<AnalysisResult> analyze(const ExperimentData& data, const AnalysisOptions& options);

}  // namespace joulemap::experiment
