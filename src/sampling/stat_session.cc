// SPDX-License-Identifier: Apache-2.0
#include "sampling/stat_session.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/signal_gate.h"
#include "base/small_file.h"
#include "sampling/command_cpu_time.h"

namespace joulemap::sampling {
namespace {

Result<FileDescriptor> open_process(pid_t pid) {
  FileDescriptor fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (fd.is_open()) return fd;
  if (errno == ESRCH || errno == EINVAL) {
    return Error{ErrorCode::not_found, fmt::format("no process {}", pid), "see ps -e for the processes there are"};
  }
  Error error = system_error("watch", fmt::format("process {}", pid), errno);
  if (error.code == ErrorCode::unsupported) error.remedy = "watching a process needs Linux 5.3 or later";
  return error;
}

struct StatOutcome {
  StatRun run;
  bool interrupted = false;  // somebody wants us to stop: no further repetitions
};

// One run.
class Session {
 public:
  Session(Meter& meter, SignalGate& signals, const StatOptions& options, FileDescriptor watched)
      : meter_(meter),
        signals_(signals),
        options_(options),
        watched_(std::move(watched)),
        cpu_time_({!options.command.empty(), options.pid}) {}

  Result<StatOutcome> run();

 private:
  Status start();
  void begin_measuring();
  void finish();
  void wait_until(std::int64_t deadline_ns);
  void take_signals();
  void reap();
  void on_tick();
  void add_interval(double to_s);

  Meter& meter_;
  SignalGate& signals_;
  const StatOptions& options_;
  FileDescriptor watched_;
  std::optional<ChildProcess> child_;
  CommandCpuTime cpu_time_;

  StatOutcome outcome_;
  bool begun_ = false;
  bool ended_ = false;
  std::int64_t next_tick_ns_ = 0;
  std::int64_t next_interval_ns_ = 0;
  double interval_from_s_ = 0;
};

Status Session::start() {
  if (!options_.command.empty()) {
    Result<ChildProcess> child = ChildProcess::prepare(options_.command, signals_.original_mask());
    if (!child) return std::move(child).error();
    child_ = std::move(*child);
  }
  if (options_.delay_ns == 0) begin_measuring();
  return child_ ? child_->release() : Status(Done{});
}

void Session::begin_measuring() {
  meter_.prepare();
  cpu_time_.begin(/*command_runs=*/options_.delay_ns > 0);
  outcome_.run.start_unix_ns = unix_ns();
  meter_.begin();
  begun_ = true;
  outcome_.run.start_monotonic_ns = meter_.begin_ns();
  next_tick_ns_ = meter_.begin_ns() + meter_.period_ns();
  next_interval_ns_ = meter_.begin_ns() + options_.interval_ns;
}

void Session::reap() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    if (!child_ || pid != child_->pid()) continue;  // an orphan that came to us
    const ExitStatus exit = ExitStatus::from_wait_status(status);
    outcome_.run.exit_code = exit.code;
    outcome_.run.signal = exit.signal;
    ended_ = true;
  }
}

void Session::take_signals() {
  while (const std::optional<signalfd_siginfo> signal = signals_.next()) {
    const int number = static_cast<int>(signal->ssi_signo);
    if (number == SIGCHLD) {
      reap();
      continue;
    }
    const bool stops = asks_to_stop(*signal);
    outcome_.interrupted = outcome_.interrupted || stops;
    if (!child_) {
      ended_ = ended_ || stops;
    } else if (!ended_ && !came_from_terminal(*signal)) {
      ::kill(child_->pid(), number);
    }
  }
}

void Session::wait_until(std::int64_t deadline_ns) {
  std::array<pollfd, 2> waited{{{signals_.fd(), POLLIN, 0}, {watched_.get(), POLLIN, 0}}};
  // With a command, the command's end is the end, whatever becomes of the watched process.
  const nfds_t count = watched_.is_open() && options_.command.empty() ? 2 : 1;
  const timespec timeout = to_timespec(std::max<std::int64_t>(deadline_ns - monotonic_ns(), 0));
  if (::ppoll(waited.data(), count, &timeout, nullptr) <= 0) return;
  if (waited[0].revents != 0) take_signals();
  if (count == 2 && waited[1].revents != 0) ended_ = true;
}

void Session::add_interval(double to_s) {
  StatInterval interval{interval_from_s_, to_s, meter_.interval(to_s - interval_from_s_)};
  interval_from_s_ = to_s;
  if (options_.on_interval) options_.on_interval(interval);
  if (options_.keep_intervals) outcome_.run.intervals.push_back(std::move(interval));
}

void Session::on_tick() {
  const std::int64_t now_ns = monotonic_ns();
  if (now_ns >= next_tick_ns_) {
    meter_.sample();
    cpu_time_.refresh();
    const std::int64_t period_ns = meter_.period_ns();
    next_tick_ns_ += ((now_ns - next_tick_ns_) / period_ns + 1) * period_ns;
  }
  if (options_.interval_ns > 0 && now_ns >= next_interval_ns_) {
    add_interval(seconds(now_ns - meter_.begin_ns()));
    const std::int64_t late = (now_ns - next_interval_ns_) / options_.interval_ns;
    next_interval_ns_ += (late + 1) * options_.interval_ns;
  }
}

void Session::finish() {
  StatRun& run = outcome_.run;
  if (!begun_) {
    run.diagnostics.add({"ended_before_delay", 1, "it ended before --delay was over: nothing was measured",
                         "choose a shorter --delay"});
    return;
  }
  meter_.end();
  run.elapsed_s = meter_.elapsed_s();
  run.own_cpu_s = meter_.own_cpu_s();
  run.samplers = meter_.costs();
  for (const SamplerCost& cost : run.samplers) run.missed_ticks += cost.missed_ticks;
  if (options_.interval_ns > 0 && run.elapsed_s > interval_from_s_) add_interval(run.elapsed_s);
  cpu_time_.end(run);
  DomainTable table = meter_.result();
  run.domains = std::move(table.rows);
  run.totals = table.totals;
  run.diagnostics.add_all(table.diagnostics);
}

Result<StatOutcome> Session::run() {
  const std::int64_t started_ns = monotonic_ns();
  if (Status status = start(); !status) return std::move(status).error();
  while (!ended_) {
    const std::int64_t begin_at_ns = started_ns + options_.delay_ns;
    if (!begun_ && monotonic_ns() >= begin_at_ns) begin_measuring();
    if (begun_) on_tick();
    std::int64_t deadline_ns = begun_ ? next_tick_ns_ : begin_at_ns;
    if (begun_ && options_.interval_ns > 0) deadline_ns = std::min(deadline_ns, next_interval_ns_);
    wait_until(deadline_ns);
  }
  finish();
  return std::move(outcome_);
}

Result<StatOutcome> measure_once(Meter& meter, SignalGate& signals, const StatOptions& options) {
  FileDescriptor watched;
  if (options.pid) {
    Result<FileDescriptor> process = open_process(*options.pid);
    if (!process) return std::move(process).error();
    watched = std::move(*process);
  }
  return Session(meter, signals, options, std::move(watched)).run();
}

// Signals that came while no command ran: the one that asks to stop must not be lost between two runs.
bool was_asked_to_stop(SignalGate& signals) {
  bool asked = false;
  while (const std::optional<signalfd_siginfo> signal = signals.next()) asked = asked || asks_to_stop(*signal);
  return asked;
}

}  // namespace

Result<StatResult> measure(Meter& meter, const StatOptions& options) {
  Result<SignalGate> signals = SignalGate::open();
  if (!signals) return std::move(signals).error();
  adopt_orphans();
  StatResult result;
  result.command = options.command;
  if (options.pid) result.watched_pid = *options.pid;
  bool interrupted = false;
  for (int run = 0; run < options.repeat && !interrupted; ++run) {
    Result<StatOutcome> outcome = measure_once(meter, *signals, options);
    if (!outcome && run == 0) return std::move(outcome).error();
    if (!outcome) {  // it could be started before: what was measured then is good
      result.diagnostics.add({"start_failed", 1, outcome.error().message, outcome.error().remedy});
      break;
    }
    result.runs.push_back(std::move(outcome->run));
    interrupted = outcome->interrupted || was_asked_to_stop(*signals);
  }
  if (static_cast<int>(result.runs.size()) < options.repeat) {
    result.diagnostics.add(
        {"interrupted", 1, fmt::format("stopped after {} of {} runs", result.runs.size(), options.repeat), ""});
  }
  return result;
}

}  // namespace joulemap::sampling
