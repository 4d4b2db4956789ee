// SPDX-License-Identifier: Apache-2.0
//
// Text of `joulemap experiment plan`, `status` and the progress of `run`, for people. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "model/experiment_plan.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// Rows, costs and statistical power. At most `most` lines of rows; 0: all.
std::string experiment_plan_text(const ExperimentPlan& plan, std::size_t most, const TextStyle& style);

// Progress: counts, failed and running rows, jobs, costs of the remaining rows.
std::string experiment_status_text(const ExperimentPlan& plan, const TextStyle& style);

// "variant=b batch=32".
std::string factor_levels_text(std::span<const ExperimentFactor> factors, std::span<const std::size_t> levels);

// One progress line, without a line end: "row 3 of 20 (variant=b, block 0): running 12 s, 4.2 min left".
struct ExperimentProgressLine {
  std::string row_label;  // "row 3 of 20 (variant=b, block 0)"
  std::string activity;
  double elapsed_s = 0;
  std::optional<double> remaining_s;
};
std::string experiment_progress_text(const ExperimentProgressLine& line);

// Result of a row: "row 3 of 20 (variant=b, block 0): done, 1.2 s, 30.1 J".
std::string row_result_text(const std::string& row_label, const ExperimentRow& row);

}  // namespace joulemap::report
