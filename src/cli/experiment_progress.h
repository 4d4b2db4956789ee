// SPDX-License-Identifier: Apache-2.0
//
// ExperimentProgress: what a running experiment tells on stderr. On a terminal one line is renewed, and a row that has ended
// leaves its line; elsewhere each row that has ended is a line of a log. One owner, main thread.
#pragma once

#include <string>
#include <vector>

#include "experiment/run/experiment_runner.h"
#include "model/experiment_data.h"

namespace joulemap::cli {

class ExperimentProgress {
 public:
  explicit ExperimentProgress(std::vector<ExperimentFactor> factors);

  // For run_rows; `this` outlives it.
  experiment::OnProgress callback();
  // The terminal's line is left empty.
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
