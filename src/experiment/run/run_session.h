// SPDX-License-Identifier: Apache-2.0
//
// RunSession: one runner at work on one machine: it holds the machine to itself among runners of the experiment, sets what
// the plan sets, knows the idle baseline, and runs attempts one at a time. An attempt is what `joulemap record` does, by our
// own program as a child: so there is one way of recording, and a crash of one side leaves the other. Ends by restoring
// what it set. One owner, main thread; signals wait in its gate.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_lock.h"
#include "base/result.h"
#include "base/signal_gate.h"
#include "experiment/run/child_run.h"
#include "experiment/run/experiment_folder.h"
#include "experiment/run/idle_watch.h"
#include "experiment/run/machine_settings.h"

namespace joulemap::experiment {

struct RunnerOptions {
  SystemRoot root;
  std::string program;  // ours, to record with
  std::string replay;   // as --replay
};

enum class RunPhase { preflight, baseline, warm_up, cool_down, row };

// One execution of one cell: a row, a warm-up or a row of the pilot.
struct RowTask {
  std::string kind = "rows";  // the folder it lies in
  std::size_t number = 0;
  std::size_t block = 0;
  std::vector<std::size_t> levels;
};

struct AttemptOutcome {
  ExperimentRow row;
  bool ran = false;            // else somebody else is at it, or we were asked to stop before
  bool asked_to_stop = false;  // the row has failed for that; nothing is to be begun any more
};

class RunSession {
 public:
  // Told when a phase begins, and about once a second while a command runs.
  using OnPhase = std::function<void(RunPhase, const RowTask*, double elapsed_s)>;

  // Takes the lock, sets the machine, runs preflights, measures the baseline, checks. `folder` outlives it.
  static Result<RunSession> begin(ExperimentFolder& folder, RunnerOptions options, OnPhase on_phase);

  // Cools down, checks, runs, measures, writes. Fails when a required check does, or when the folder cannot be written.
  // `take` gives the attempt its folder at the last moment; nothing: it is somebody else's.
  using Take = std::function<Result<std::optional<Attempt>>()>;
  Result<AttemptOutcome> run(const RowTask& task, const Take& take);

  bool asked_to_stop() const { return asked_to_stop_; }
  const std::vector<CheckOutcome>& checks() const { return checks_; }  // of the last look
  const Diagnostics& diagnostics() const { return settings_.diagnostics(); }
  Status end();  // restores; the destructor does, too

 private:
  RunSession(ExperimentFolder& folder, RunnerOptions options, OnPhase on_phase, std::unique_ptr<SignalGate> signals,
             FileLock lock, MachineSettings settings)
      : folder_(folder),
        options_(std::move(options)),
        on_phase_(std::move(on_phase)),
        signals_(std::move(signals)),
        lock_(std::move(lock)),
        settings_(std::move(settings)) {}

  Status open_watch();  // nothing of ours reads sensors while a row is recorded: closed after each look
  void close_watch();
  Status run_preflights();
  Status measure_baseline();
  // A look at the machine before a row: cool-down, first power, checks.
  Status prepare(const RowTask& task, RowSetting& setting, ExperimentRow& row);
  Result<ChildEnd> record(const RowTask& task, const Attempt& attempt, RowSetting& setting);
  void judge(const Result<ChildEnd>& end, const Attempt& attempt, RowSetting& setting, ExperimentRow& row);

  ExperimentFolder& folder_;
  RunnerOptions options_;
  OnPhase on_phase_;
  std::unique_ptr<SignalGate> signals_;  // where the watch finds it, wherever the session is moved
  FileLock lock_;
  MachineSettings settings_;
  std::optional<IdleWatch> watch_;
  std::optional<IdleState> baseline_;
  std::vector<CheckOutcome> checks_;
  bool asked_to_stop_ = false;
};

}  // namespace joulemap::experiment
