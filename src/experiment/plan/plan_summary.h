// SPDX-License-Identifier: Apache-2.0
//
// Summarizes a plan and its progress for `experiment plan` and `experiment status`. Pure except for reading the folder.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "experiment/plan/experiment_spec.h"
#include "experiment/plan/run_plan.h"
#include "experiment/run/experiment_folder.h"
#include "model/experiment_plan.h"

namespace joulemap::experiment {

// Summary of a plan that has no folder yet.
Result<ExperimentPlan> summarize_plan(const ExperimentSpec& spec);

// Summary that includes the rows and the pilot in the folder.
ExperimentPlan summarize_plan(const ExperimentFolder& folder);

// Number of pairs of cells that differ only in one compared factor: the largest number of all compared factors, because
// the analysis adjusts p-values for each factor separately.
std::size_t count_comparisons(const std::vector<ExperimentFactor>& factors,
                              const std::vector<std::vector<std::size_t>>& cells);

// Time and energy of the remaining rows, from the means of their cells, else from the mean of all rows. None before any
// row has run.
std::optional<ExperimentForecast> forecast_experiment(const ExperimentSpec& spec, std::span<const ExperimentRow> rows,
                                                      std::span<const ExperimentRow> pilot_rows);

// Pooled standard deviation of energy within cells, as a fraction of the cell means; of time if no energy is known.
std::optional<double> relative_noise_within_cells(std::span<const ExperimentRow> rows);

}  // namespace joulemap::experiment
