// SPDX-License-Identifier: Apache-2.0
//
// ExperimentProgress: prints the progress of a running experiment to stderr. On a terminal it redraws one status line
// and prints a line for each finished row. Elsewhere it prints a log: a line for each finished row and for other long
// phases. One owner, main thread.
#pragma once

#include <string>
#include <vector>

#include "experiment/run/experiment_runner.h"
#include "model/experiment_data.h"

namespace joulemap::cli {

class ExperimentProgress {
 public:
  explicit ExperimentProgress(std::vector<ExperimentFactor> factors);

  // For run_rows; `this` must outlive the callback.
  experiment::OnProgress callback();
  // Clears the status line of the terminal.
  void finish();

 private:
  void tell(const experiment::RunProgress& progress);
  void renew(const std::string& text);

  std::vector<ExperimentFactor> factors_;
  bool is_terminal_;
  bool has_line_ = false;
  std::string last_phase_;
};

}  // namespace joulemap::cli
