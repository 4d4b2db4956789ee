// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/experiment_runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"

namespace joulemap::experiment {
namespace {

class ExperimentRunner {
 public:
  ExperimentRunner(ExperimentFolder& folder, const RunnerOptions& options, const ProgressCallback& on_progress)
      : folder_(folder), options_(options), on_progress_(on_progress) {}

  Status begin_session(std::size_t total) {
    progress_.row_count = total;
    Result<RunSession> session = RunSession::begin(
        folder_, options_,
        [this](RunPhase phase, const RowTask* task, double elapsed_s) { report_progress(phase, task, elapsed_s); });
    if (!session) return std::move(session).error();
    session_.emplace(std::move(*session));
    return Done{};
  }

  // Runs the first rows without analysing them, so that caches, clocks and just-in-time compilers reach steady state.
  Status warm_up() {
    for (std::size_t run = 0; run < folder_.spec().warm_up_runs && !session_->stop_requested(); ++run) {
      const PlannedRow& template_row = folder_.run_table()[run % folder_.run_table().size()].planned_row;
      const RowTask task{"warm-up", run, template_row.block_number, template_row.levels};
      const Result<AttemptOutcome> outcome = session_->run(task, [&] { return begin_unclaimed_attempt(task); });
      if (!outcome) return outcome.error();
      if (!outcome->has_run) continue;
      if (outcome->row.state != ExperimentRowState::done && !outcome->stop_requested) {
        return Error{ErrorCode::io, fmt::format("the warm-up run failed: {}", outcome->row.error),
                     fmt::format("see {}", folder_.row_path("warm-up", run))};
      }
    }
    return Done{};
  }

  // Runs the rows and returns those that failed.
  Result<std::vector<std::size_t>> run(const std::vector<std::size_t>& rows, bool include_unknown_owners) {
    std::vector<std::size_t> failed_rows;
    for (const std::size_t number : rows) {
      if (session_->stop_requested()) break;
      ++progress_.row_position;
      const PlannedRow& plan = folder_.run_table().at(number).planned_row;
      const RowTask task{"rows", number, plan.block_number, plan.levels};
      const Result<AttemptOutcome> outcome =
          session_->run(task, [&] { return folder_.claim_row(number, include_unknown_owners); });
      if (!outcome) return outcome.error();
      if (!outcome->has_run) {
        if (!outcome->stop_requested) ++outcome_.skipped_count;
        continue;
      }
      if (Status update_status = folder_.set_row_state(number, outcome->row.state, outcome->row.attempts);
          !update_status) {
        return std::move(update_status).error();
      }
      if (outcome->row.state != ExperimentRowState::done) failed_rows.push_back(number);
      finish_row(task, outcome->row);
    }
    return failed_rows;
  }

  Status run_pilot(const std::vector<std::vector<std::size_t>>& cells) {
    for (std::size_t cell = 0; cell < cells.size() && !session_->stop_requested(); ++cell) {
      ++progress_.row_position;
      const RowTask task{"pilot", cell, 0, cells[cell]};
      const Result<AttemptOutcome> outcome = session_->run(task, [&] { return begin_unclaimed_attempt(task); });
      if (!outcome) return outcome.error();
      if (!outcome->has_run) continue;
      if (outcome->row.state != ExperimentRowState::done) ++outcome_.failed_count;
      finish_row(task, outcome->row);
    }
    return Done{};
  }

  RunOutcome end_session() {
    outcome_.diagnostics.add_all(session_->diagnostics());
    if (const Status restore_status = session_->end(); !restore_status) {
      outcome_.diagnostics.add({"not_restored", 1, restore_status.error().message, restore_status.error().remedy});
    }
    outcome_.was_stopped = session_->stop_requested();
    outcome_.checks = session_->checks();
    return std::move(outcome_);
  }

  bool stop_requested() const { return session_->stop_requested(); }
  void add_expected_rows(std::size_t rows) { progress_.row_count += rows; }
  RunOutcome& outcome() { return outcome_; }

 private:
  Result<std::optional<Attempt>> begin_unclaimed_attempt(const RowTask& task) {
    Result<Attempt> attempt = folder_.begin_attempt(task.row_kind, task.row_number);
    if (!attempt) return std::move(attempt).error();
    return std::optional<Attempt>(std::move(*attempt));
  }

  void report_progress(RunPhase phase, const RowTask* task, double elapsed_s) {
    if (first_row_begin_ns_ == 0 && task != nullptr && task->row_kind != "warm-up")
      first_row_begin_ns_ = monotonic_ns();
    progress_.phase = phase;
    progress_.task = task == nullptr ? std::nullopt : std::optional(*task);
    progress_.elapsed_s = elapsed_s;
    progress_.remaining_s = estimate_remaining_s();
    on_progress_(progress_);
  }

  void finish_row(const RowTask& task, const ExperimentRow& row) {
    if (row.state == ExperimentRowState::done) ++outcome_.done_count;
    ++ended_row_count_;
    mean_row_s_ = seconds(monotonic_ns() - first_row_begin_ns_) / static_cast<double>(ended_row_count_);
    last_row_end_ns_ = monotonic_ns();
    progress_.phase = RunPhase::row;
    progress_.task = task;
    progress_.remaining_s = estimate_remaining_s();
    progress_.finished_row = row;
    on_progress_(progress_);
    progress_.finished_row.reset();
  }

  // Estimated time of the rows that have not ended; none before the first has. The mean time per row includes cool-down
  // and other time between rows.
  std::optional<double> estimate_remaining_s() const {
    if (ended_row_count_ == 0) return std::nullopt;
    const double since_s = seconds(monotonic_ns() - last_row_end_ns_);
    return std::max(
        mean_row_s_ * static_cast<double>(progress_.row_count - std::min(ended_row_count_, progress_.row_count)) -
            since_s,
        0.0);
  }

  ExperimentFolder& folder_;
  const RunnerOptions& options_;
  const ProgressCallback& on_progress_;
  std::optional<RunSession> session_;
  RunProgress progress_;
  RunOutcome outcome_;
  std::size_t ended_row_count_ = 0;
  double mean_row_s_ = 0;
  std::int64_t first_row_begin_ns_ = 0;
  std::int64_t last_row_end_ns_ = 0;
};

}  // namespace

std::vector<std::size_t> list_rows_to_run(const ExperimentFolder& folder, bool include_failed, bool include_running) {
  std::vector<std::size_t> rows;
  for (std::size_t number = 0; number < folder.run_table().size(); ++number) {
    const ExperimentRowState state = folder.run_table()[number].state;
    if (state == ExperimentRowState::todo || (include_failed && state == ExperimentRowState::failed) ||
        (include_running && state == ExperimentRowState::running)) {
      rows.push_back(number);
    }
  }
  return rows;
}

Result<RunOutcome> run_rows(ExperimentFolder& folder, const RunRequest& request, const RunnerOptions& options,
                            const ProgressCallback& on_progress) {
  if (request.row_numbers.empty()) return RunOutcome{};
  ExperimentRunner runner(folder, options, on_progress);
  if (Status begun = runner.begin_session(request.row_numbers.size()); !begun) return std::move(begun).error();
  if (request.runs_warm_up) {
    if (Status warm_up_status = runner.warm_up(); !warm_up_status) return std::move(warm_up_status).error();
  }
  Result<std::vector<std::size_t>> failed_rows = runner.run(request.row_numbers, request.include_unknown_owners);
  if (!failed_rows) return std::move(failed_rows).error();
  if (request.retry_failed && !failed_rows->empty() && !runner.stop_requested()) {
    runner.add_expected_rows(failed_rows->size());
    failed_rows = runner.run(*failed_rows, false);
    if (!failed_rows) return std::move(failed_rows).error();
  }
  RunOutcome& outcome = runner.outcome();
  outcome.failed_count = failed_rows->size();
  outcome.remaining_count =
      request.row_numbers.size() -
      std::min(request.row_numbers.size(), outcome.done_count + outcome.failed_count + outcome.skipped_count);
  return runner.end_session();
}

Result<RunOutcome> run_pilot(ExperimentFolder& folder, const RunnerOptions& options,
                             const ProgressCallback& on_progress) {
  const std::vector<std::vector<std::size_t>> cells = list_planned_cells(folder.spec());
  ExperimentRunner runner(folder, options, on_progress);
  if (Status begun = runner.begin_session(cells.size()); !begun) return std::move(begun).error();
  if (Status warm_up_status = runner.warm_up(); !warm_up_status) return std::move(warm_up_status).error();
  if (Status run = runner.run_pilot(cells); !run) return std::move(run).error();
  return runner.end_session();
}

}  // namespace joulemap::experiment
