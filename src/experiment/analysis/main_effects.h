// SPDX-License-Identifier: Apache-2.0
//
// Effects of the compared factors over all combinations of the other factors' levels, and their interactions with the
// other factors. Comparisons within each combination have too few rows to show what many combinations show together.
//
// Two levels are compared by a stratified rank test: the combinations are the strata. An effect is called general only
// if the test shows it, and if the combinations agree: all have the same direction, or the signed-rank test of their
// effects is significant; and Gail and Simon's test does not show effects in both directions
// (docs/explanation/statistics.md). The F test over more than two levels claims nothing general. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "experiment/analysis/comparisons.h"
#include "experiment/analysis/experiment_table.h"
#include "model/analysis_result.h"

namespace joulemap::experiment {

struct FactorEffects {
  std::vector<MainEffect> main_effects;
  std::vector<Interaction> interactions;
};

// Results without verdict texts; effect_verdict.h fills them in. Factors with a single combination of the others have no
// main effect: the comparison within it is the same.
FactorEffects analyze_factor_effects(const ExperimentData& data, const ExperimentTable& table,
                                     const ComparisonOptions& options);

}  // namespace joulemap::experiment
