// SPDX-License-Identifier: Apache-2.0
//
// Texts of `joulemap experiment plan`, `status` and `run` for people. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "model/experiment_plan.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// Rows, forecast cost and statistical power of a plan. At most `max_rows` rows; 0: all.
std::string experiment_plan_text(const ExperimentPlan& plan, std::size_t max_rows, const TextStyle& style);

// State of an experiment: counts, failed and running rows, cluster jobs, forecast cost of the remaining rows.
std::string experiment_status_text(const ExperimentPlan& plan, const TextStyle& style);

// Levels of a row with the names of the factors: "variant=b batch=32".
std::string factor_levels_text(std::span<const ExperimentFactor> factors, std::span<const std::size_t> levels);

// What the progress line of a running experiment shows.
struct ExperimentProgressLine {
  std::string row_label;  // "row 3, 1 of 20 (variant=b, block 0)"; empty if no row is running
  std::string activity;
  double elapsed_s = 0;
  std::optional<double> remaining_s;
};
// "row 3, 1 of 20 (variant=b, block 0): running 12.0 s, about 250 s left", without a newline.
std::string experiment_progress_text(const ExperimentProgressLine& line);

// Result of a row: "row 3, 1 of 20 (variant=b, block 0): done, 1.20 s, 30.10 J", without a newline.
std::string row_result_text(const std::string& row_label, const ExperimentRow& row);

}  // namespace joulemap::report
