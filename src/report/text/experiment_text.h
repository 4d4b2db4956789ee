// SPDX-License-Identifier: Apache-2.0
//
// `joulemap experiment plan`, `status` and what `run` says meanwhile, for people. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "model/experiment_plan.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// Rows, costs, what statistics can show. At most `most` lines of rows; 0: all.
std::string plan_text(const ExperimentPlan& plan, std::size_t most, const TextStyle& style);

// How far it is: counts, rows that failed or run, jobs, costs of what is left.
std::string status_text(const ExperimentPlan& plan, const TextStyle& style);

// "variant=b batch=32".
std::string levels_text(std::span<const ExperimentFactor> factors, std::span<const std::size_t> levels);

// One line of a running experiment, without its end: "row 3 of 20 (variant=b, block 0): running 12 s, 4.2 min left".
struct ProgressLine {
  std::string what;  // "row 3 of 20 (variant=b, block 0)"
  std::string doing;
  double elapsed_s = 0;
  std::optional<double> left_s;
};
std::string progress_text(const ProgressLine& line);

// How a row ended: "row 3 of 20 (variant=b, block 0): done, 1.2 s, 30.1 J".
std::string row_end_text(const std::string& what, const ExperimentRow& row);

}  // namespace joulemap::report
