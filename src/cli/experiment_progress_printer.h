// SPDX-License-Identifier: Apache-2.0
//
// ExperimentProgressPrinter: prints the progress of a running experiment to stderr. On a terminal it redraws one status
// line and prints a line for each finished row. Elsewhere it prints a log: a line for each finished row, and one when
// another phase begins (preflight, baseline, warm-up). One owner, main thread.
#pragma once

#include <string>
#include <vector>

#include "experiment/run/experiment_runner.h"
#include "model/experiment_data.h"

namespace joulemap::cli {

class ExperimentProgressPrinter {
 public:
  explicit ExperimentProgressPrinter(std::vector<ExperimentFactor> factors);

  // Callback for experiment::run_rows() and run_pilot(). `this` must outlive it.
  experiment::ProgressCallback make_progress_callback();
  // Clears the status line of the terminal.
  void finish();

 private:
  void print_progress(const experiment::RunProgress& progress);
  void redraw_status_line(const std::string& text);

  std::vector<ExperimentFactor> factors_;
  bool is_terminal_;
  bool has_status_line_ = false;
  std::string last_phase_;
};

}  // namespace joulemap::cli
