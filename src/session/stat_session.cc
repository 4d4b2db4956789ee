// SPDX-License-Identifier: Apache-2.0
#include "session/stat_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/blocked_signals.h"
#include "base/clock.h"
#include "session/command_cpu_time.h"
#include "session/measured_command.h"

namespace joulemap::session {
namespace {

struct StatOutcome {
  StatRun run;
  bool stop_requested = false;  // stop requested: no further repetitions
};

// One run of the command.
class StatSession {
 public:
  StatSession(sampling::Meter& meter, BlockedSignals& signals, const StatOptions& options)
      : meter_(meter),
        options_(options),
        command_(signals),
        command_cpu_time_({!options.command.empty(), options.attached_pid}) {}

  Result<StatOutcome> run();

 private:
  Status start_command();
  void begin_measuring();
  void finish_run();
  void update_at_tick();
  void add_interval(double to_s);

  sampling::Meter& meter_;
  const StatOptions& options_;
  MeasuredCommand command_;
  CommandCpuTime command_cpu_time_;

  StatRun run_;
  bool has_begun_measuring_ = false;
  std::int64_t next_tick_ns_ = 0;
  std::int64_t next_interval_ns_ = 0;
  double interval_from_s_ = 0;
};

Status StatSession::start_command() {
  if (options_.attached_pid) {
    if (Status status = command_.attach(*options_.attached_pid); !status) return status;
  }
  if (!options_.command.empty()) {
    if (Status status = command_.prepare(options_.command); !status) return status;
  }
  if (options_.delay_ns == 0) begin_measuring();
  return command_.execute_command();
}

void StatSession::begin_measuring() {
  meter_.prepare();
  command_cpu_time_.begin(/*command_runs=*/options_.delay_ns > 0);
  run_.start_unix_ns = unix_ns();
  meter_.begin();
  has_begun_measuring_ = true;
  run_.start_monotonic_ns = meter_.begin_ns();
  next_tick_ns_ = meter_.begin_ns() + meter_.period_ns();
  next_interval_ns_ = meter_.begin_ns() + options_.interval_ns;
}

void StatSession::add_interval(double to_s) {
  StatInterval interval{interval_from_s_, to_s, meter_.energy_since_last_call(to_s - interval_from_s_)};
  interval_from_s_ = to_s;
  if (options_.on_interval) options_.on_interval(interval);
  if (options_.keep_intervals) run_.intervals.push_back(std::move(interval));
}

void StatSession::update_at_tick() {
  const std::int64_t now_ns = monotonic_ns();
  if (now_ns >= next_tick_ns_) {
    meter_.sample();
    command_cpu_time_.update_attached_cpu_time();
    const std::int64_t period_ns = meter_.period_ns();
    next_tick_ns_ += ((now_ns - next_tick_ns_) / period_ns + 1) * period_ns;
  }
  if (options_.interval_ns > 0 && now_ns >= next_interval_ns_) {
    add_interval(seconds(now_ns - meter_.begin_ns()));
    const std::int64_t missed_interval_count = (now_ns - next_interval_ns_) / options_.interval_ns;
    next_interval_ns_ += (missed_interval_count + 1) * options_.interval_ns;
  }
}

void StatSession::finish_run() {
  if (command_.exit_status()) {
    run_.exit_code = command_.exit_status()->code;
    run_.signal = command_.exit_status()->signal;
  }
  if (!has_begun_measuring_) {
    run_.diagnostics.add({"ended_before_delay", 1, "the process ended before --delay: nothing was measured",
                          "choose a shorter --delay"});
    return;
  }
  meter_.end();
  run_.elapsed_s = meter_.elapsed_s();
  run_.overhead_cpu_s = meter_.overhead_cpu_s();
  run_.samplers = meter_.sampler_costs();
  for (const SamplerCost& cost : run_.samplers) run_.missed_ticks += cost.missed_ticks;
  if (options_.interval_ns > 0 && run_.elapsed_s > interval_from_s_) add_interval(run_.elapsed_s);
  command_cpu_time_.end(run_);
  DomainTable table = meter_.result();
  run_.domains = std::move(table.rows);
  run_.totals = table.totals;
  run_.diagnostics.add_all(table.diagnostics);
}

Result<StatOutcome> StatSession::run() {
  const std::int64_t started_ns = monotonic_ns();
  if (Status status = start_command(); !status) return std::move(status).error();
  while (!command_.has_ended()) {
    const std::int64_t begin_at_ns = started_ns + options_.delay_ns;
    if (!has_begun_measuring_ && monotonic_ns() >= begin_at_ns) begin_measuring();
    if (has_begun_measuring_) update_at_tick();
    std::int64_t deadline_ns = has_begun_measuring_ ? next_tick_ns_ : begin_at_ns;
    if (has_begun_measuring_ && options_.interval_ns > 0) deadline_ns = std::min(deadline_ns, next_interval_ns_);
    command_.wait_until(deadline_ns);
  }
  finish_run();
  return StatOutcome{std::move(run_), command_.stop_requested()};
}

// Handles the signals that came between two runs. Returns whether one of them requests termination.
bool is_stop_requested(BlockedSignals& signals) {
  bool stop_requested = false;
  while (const std::optional<signalfd_siginfo> signal = signals.next())
    stop_requested = stop_requested || is_termination_signal(*signal);
  return stop_requested;
}

}  // namespace

Result<StatResult> measure_command(sampling::Meter& meter, const StatOptions& options) {
  Result<BlockedSignals> signals = BlockedSignals::open();
  if (!signals) return std::move(signals).error();
  become_subreaper();
  StatResult result;
  result.command = options.command;
  if (options.attached_pid) result.attached_pid = *options.attached_pid;
  bool interrupted = false;
  for (int run = 0; run < options.repetitions && !interrupted; ++run) {
    Result<StatOutcome> outcome = StatSession(meter, *signals, options).run();
    if (!outcome && run == 0) return std::move(outcome).error();
    if (!outcome) {  // this run failed to start: keep the measurements of the earlier runs
      result.diagnostics.add({"start_failed", 1, outcome.error().message, outcome.error().remedy});
      break;
    }
    result.runs.push_back(std::move(outcome->run));
    interrupted = outcome->stop_requested || is_stop_requested(*signals);
  }
  if (static_cast<int>(result.runs.size()) < options.repetitions) {
    result.diagnostics.add(
        {"interrupted", 1, fmt::format("stopped after {} of {} runs", result.runs.size(), options.repetitions), ""});
  }
  return result;
}

}  // namespace joulemap::session
