// SPDX-License-Identifier: Apache-2.0
//
// Runs rows of an experiment, one at a time, in the order of the plan: what `run`, `resume`, `run-row` and `plan --pilot`
// do. A row that fails is kept, and the next one begins. Whatever ends the runner, the folder can be gone on with. Main
// thread; seconds.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "experiment/run/experiment_folder.h"
#include "experiment/run/run_session.h"

namespace joulemap::experiment {

// Where a run stands; told when a phase begins, while a command runs, and when a row has ended.
struct RunProgress {
  RunPhase phase = RunPhase::baseline;
  std::optional<RowTask> task;
  std::size_t position = 0;  // of the rows to run, from 1
  std::size_t total = 0;
  double elapsed_s = 0;                   // of the phase
  std::optional<double> left_s;           // of all rows; none before one has ended
  std::optional<ExperimentRow> finished;  // the row that has just ended
};

struct RunRequest {
  std::vector<std::size_t> rows;  // in this order
  bool retry_failed = false;      // once more, after the others
  bool from_elsewhere = false;    // rows of machines of which nobody knows
  bool warm_up = true;
};

struct RunOutcome {
  std::size_t done = 0;
  std::size_t failed = 0;
  std::size_t skipped = 0;  // somebody else is at them, or has done them
  std::size_t left = 0;
  bool stopped = false;              // by Ctrl-C or another request to stop
  std::vector<CheckOutcome> checks;  // of the last look at the machine
  Diagnostics diagnostics;
};

using OnProgress = std::function<void(const RunProgress&)>;

// Fails before the first row, or when a required check fails or the folder cannot be written: what was run is kept.
Result<RunOutcome> run_rows(ExperimentFolder& folder, const RunRequest& request, const RunnerOptions& options,
                            const OnProgress& on_progress);

// One row of each cell, apart from the experiment's own: under pilot/ of the folder.
Result<RunOutcome> run_pilot(ExperimentFolder& folder, const RunnerOptions& options, const OnProgress& on_progress);

// Rows that are in one of these states, in the order of the plan.
std::vector<std::size_t> rows_to_run(const ExperimentFolder& folder, bool failed_too, bool running_too);

}  // namespace joulemap::experiment
