// SPDX-License-Identifier: Apache-2.0
//
// From a plan, and what has been run of it, to what `experiment plan` and `status` tell. Pure but for reading the folder.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "experiment/plan/experiment_spec.h"
#include "experiment/plan/run_plan.h"
#include "experiment/run/experiment_folder.h"
#include "model/experiment_plan.h"

namespace joulemap::experiment {

// Of a plan that has no folder yet.
Result<ExperimentPlan> summarize(const ExperimentSpec& spec);

// With what lies in the folder: rows and pilot.
ExperimentPlan summarize(const ExperimentFolder& folder);

// Pairs of cells that differ in the level of one factor.
std::size_t comparisons_of(const std::vector<std::vector<std::size_t>>& cells);

// What the rows that are left will cost, by the means of their own cells, else by those of all. Nothing before anything ran.
std::optional<ExperimentForecast> forecast(const ExperimentSpec& spec, std::span<const ExperimentRow> rows,
                                           std::span<const ExperimentRow> pilot);

// Standard deviation of energy (of time where no energy is known) within cells, as a share of their means; pooled.
std::optional<double> noise_within_cells(std::span<const ExperimentRow> rows);

}  // namespace joulemap::experiment
