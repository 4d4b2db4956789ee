// SPDX-License-Identifier: Apache-2.0
//
// RunSession: one runner on one machine. It locks the machine against other runners of the experiment, applies the
// plan's settings, measures the idle baseline, and runs attempts one at a time. An attempt runs `joulemap record` as a
// child process, so that rows are recorded like any other run and the runner survives a crash of the recorder. If the
// runner dies, the recorder gets SIGTERM. end() restores the settings. One owner, main thread; signals are blocked and
// handled between the phases and while a command runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/blocked_signals.h"
#include "base/file_lock.h"
#include "base/result.h"
#include "experiment/run/child_run.h"
#include "experiment/run/experiment_folder.h"
#include "experiment/run/idle_monitor.h"
#include "experiment/run/machine_settings.h"

namespace joulemap::experiment {

struct RunnerOptions {
  SystemRoot system_root;
  std::string joulemap_program;  // path of the joulemap program, which records the rows
  std::string replay_option;     // value of --replay
};

enum class RunPhase { preflight, baseline, warm_up, cool_down, row };

// One execution of one cell: a row, a warm-up or a row of the pilot.
struct RowTask {
  std::string row_kind = "rows";  // folder of the attempts: "rows", "warm-up" or "pilot"
  std::size_t row_number = 0;
  std::size_t block_number = 0;
  std::vector<std::size_t> levels;
};

struct AttemptOutcome {
  ExperimentRow row;
  bool has_run = false;         // false: another runner owns the row, or a stop was requested before
  bool stop_requested = false;  // a signal requested a stop: start nothing more
};

class RunSession {
 public:
  // Called when a phase begins, and about once a second while a command runs.
  using PhaseCallback = std::function<void(RunPhase, const RowTask*, double elapsed_s)>;

  // Takes the lock, applies settings, runs preflights, measures the baseline, checks. `folder` must outlive the
  // session.
  static Result<RunSession> begin(ExperimentFolder& folder, RunnerOptions options, PhaseCallback on_phase);

  // Runs one attempt: waits until the machine has cooled down, checks it, runs the command, reads the recording, and
  // writes the result. Fails if a required check fails or the folder cannot be written.
  // `claim` creates the attempt's folder at the last moment; it returns none if another runner owns the row.
  using ClaimCallback = std::function<Result<std::optional<Attempt>>()>;
  Result<AttemptOutcome> run(const RowTask& task, const ClaimCallback& claim);

  bool stop_requested() const { return stop_requested_; }
  const std::vector<CheckOutcome>& checks() const { return checks_; }  // outcomes of the last check of the machine
  const Diagnostics& diagnostics() const { return machine_settings_.diagnostics(); }
  Status end();  // restores the settings; the destructor does, too

 private:
  RunSession(ExperimentFolder& folder, RunnerOptions options, PhaseCallback on_phase,
             std::unique_ptr<BlockedSignals> signals, FileLock lock, MachineSettings settings)
      : experiment_folder_(folder),
        options_(std::move(options)),
        on_phase_(std::move(on_phase)),
        blocked_signals_(std::move(signals)),
        machine_lock_(std::move(lock)),
        machine_settings_(std::move(settings)) {}

  Status open_idle_monitor();  // closed after each use, so that the runner reads no sensor while a row is recorded
  void close_idle_monitor();
  Status run_preflights();
  Status measure_baseline();
  // Prepares a row: cool-down, initial power, checks.
  Status prepare(const RowTask& task, AttemptConditions& conditions, ExperimentRow& row);
  Result<ChildResult> record(const RowTask& task, const Attempt& attempt, AttemptConditions& conditions);
  void fill_attempt_outcome(const Result<ChildResult>& end, const Attempt& attempt, AttemptConditions& conditions,
                            ExperimentRow& row);

  ExperimentFolder& experiment_folder_;
  RunnerOptions options_;
  PhaseCallback on_phase_;
  std::unique_ptr<BlockedSignals> blocked_signals_;  // on the heap: the idle monitor's reference must survive a move
  FileLock machine_lock_;
  MachineSettings machine_settings_;
  std::optional<IdleMonitor> idle_monitor_;
  std::optional<IdleState> idle_baseline_;
  std::vector<CheckOutcome> checks_;
  bool stop_requested_ = false;
};

}  // namespace joulemap::experiment
