// SPDX-License-Identifier: Apache-2.0
//
// Runs rows of an experiment, one at a time, in plan order, for `run`, `resume`, `run-row` and `plan --pilot`. A failed
// row is kept, and the next one starts. However the runner ends, the folder can be resumed. Main thread; seconds.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "experiment/run/experiment_folder.h"
#include "experiment/run/run_session.h"

namespace joulemap::experiment {

// Progress of a run; reported when a phase begins, while a command runs, and when a row has ended.
struct RunProgress {
  RunPhase phase = RunPhase::baseline;
  std::optional<RowTask> task;
  std::size_t row_position = 0;  // index among the rows to run, from 1
  std::size_t row_count = 0;
  double elapsed_s = 0;                       // since the start of the phase
  std::optional<double> remaining_s;          // estimate for all remaining rows; none before the first row has ended
  std::optional<ExperimentRow> finished_row;  // row that has just ended
};

struct RunRequest {
  std::vector<std::size_t> row_numbers;  // indices of the rows to run, in this order
  bool retry_failed = false;             // run failed rows once more, after the others
  bool include_unknown_owners = false;   // also take rows of machines whose state is unknown
  bool runs_warm_up = true;
};

struct RunOutcome {
  std::size_t done_count = 0;
  std::size_t failed_count = 0;
  std::size_t skipped_count = 0;  // rows that another runner owns or has finished
  std::size_t remaining_count = 0;
  bool was_stopped = false;          // ended early by Ctrl-C or another signal
  std::vector<CheckOutcome> checks;  // outcomes of the last check of the machine
  Diagnostics diagnostics;
};

using ProgressCallback = std::function<void(const RunProgress&)>;

// Fails before the first row, if a required check fails, or if the folder cannot be written; finished rows are kept.
Result<RunOutcome> run_rows(ExperimentFolder& folder, const RunRequest& request, const RunnerOptions& options,
                            const ProgressCallback& on_progress);

// Runs one row of each cell, stored under pilot/ of the folder, separate from the experiment's rows.
Result<RunOutcome> run_pilot(ExperimentFolder& folder, const RunnerOptions& options,
                             const ProgressCallback& on_progress);

// Rows in state todo, and optionally failed or running, in plan order.
std::vector<std::size_t> list_rows_to_run(const ExperimentFolder& folder, bool include_failed, bool include_running);

}  // namespace joulemap::experiment
