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
std::string plan_text(const ExperimentPlan& plan, std::size_t most, const TextStyle& style);

// Progress: counts, failed and running rows, jobs, costs of the remaining rows.
std::string status_text(const ExperimentPlan& plan, const TextStyle& style);

// "variant=b batch=32".
std::string levels_text(std::span<const ExperimentFactor> factors, std::span<const std::size_t> levels);

// One progress line, without a line end: "row 3 of 20 (variant=b, block 0): running 12 s, 4.2 min left".
struct ProgressLine {
  std::string what;  // "row 3 of 20 (variant=b, block 0)"
  std::string doing;
  double elapsed_s = 0;
  std::optional<double> left_s;
};
std::string progress_text(const ProgressLine& line);

// Result of a row: "row 3 of 20 (variant=b, block 0): done, 1.2 s, 30.1 J".
std::string row_end_text(const std::string& what, const ExperimentRow& row);

}  // namespace joulemap::report
