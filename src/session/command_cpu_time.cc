// SPDX-License-Identifier: Apache-2.0
#include "session/command_cpu_time.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/cpu_times.h"

namespace joulemap::session {
namespace {

// The kernel counts machine time in ticks of 10 ms per CPU: below this time the process share is meaningless.
constexpr double kMinMachineCpuTime_s = 0.05;
constexpr std::int64_t kProcessSearchPeriod_ns = kNanosecondsPerSecond;

bool has_waitable_child() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

std::optional<double> read_machine_cpu_s() {
  const Result<MachineCpuTime> time = read_machine_cpu_time(SystemRoot{});
  if (!time) return std::nullopt;
  return time->busy_s;
}

}  // namespace

double descendants_cpu_s() {
  const UserSystemTime finished_children_cpu_time = read_finished_children_cpu_time();
  double total_s = finished_children_cpu_time.user_s + finished_children_cpu_time.system_s;
  if (!has_waitable_child()) return total_s;
  const std::vector<ProcessCpuTime> processes = read_all_process_cpu_times();
  for (const ProcessCpuTime& process : processes) {
    if (process.parent != ::getpid()) continue;
    if (const Result<double> tree_cpu_s = process_tree_cpu_s(processes, process.pid)) total_s += *tree_cpu_s;
  }
  return total_s;
}

void AttachedProcessCpuTime::search_descendants() {
  next_search_ns_ = monotonic_ns() + search_period_ns_;
  const std::vector<ProcessCpuTime> processes = read_all_process_cpu_times();
  const Result<double> tree_cpu_s = process_tree_cpu_s(processes, pid_);
  if (!tree_cpu_s) return;
  const auto process = std::ranges::find(processes, pid_, &ProcessCpuTime::pid);
  descendants_cpu_at_search_s_ = *tree_cpu_s - process->process_cpu_s;
  const Result<double> recorder_cpu_s = process_tree_cpu_s(processes, ::getpid());
  if (::getppid() == pid_ && recorder_cpu_s) descendants_cpu_at_search_s_ -= *recorder_cpu_s;
}

std::optional<double> AttachedProcessCpuTime::read_cpu_s() {
  if (monotonic_ns() >= next_search_ns_) search_descendants();
  const Result<ProcessCpuTime> process = read_process_cpu_time(pid_);
  if (!process) return std::nullopt;
  // Descendants that were reaped after the search are in both values.
  return process->process_cpu_s + std::max(process->reaped_children_cpu_s, descendants_cpu_at_search_s_);
}

void become_subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

CommandCpuTime::CommandCpuTime(CpuTimeSubject subject)
    : measured_subject_(subject), had_other_children_(has_waitable_child()) {
  if (subject.attached_pid) attached_cpu_time_.emplace(*subject.attached_pid, kProcessSearchPeriod_ns);
}

void CommandCpuTime::update_attached_cpu_time() {
  if (!attached_cpu_time_) return;
  if (const std::optional<double> now_s = attached_cpu_time_->read_cpu_s()) subject_cpu_latest_s_ = now_s;
}

void CommandCpuTime::begin(bool is_command_running) {
  const UserSystemTime finished_children_cpu_time = read_finished_children_cpu_time();
  user_cpu_at_begin_s_ = finished_children_cpu_time.user_s;
  system_cpu_at_begin_s_ = finished_children_cpu_time.system_s;
  if (measured_subject_.attached_pid) {
    update_attached_cpu_time();
    subject_cpu_at_begin_s_ = std::exchange(subject_cpu_latest_s_, std::nullopt);
  } else if (measured_subject_.has_command) {
    const bool search = is_command_running || had_other_children_;
    subject_cpu_at_begin_s_ =
        search ? descendants_cpu_s() : finished_children_cpu_time.user_s + finished_children_cpu_time.system_s;
  }
  machine_cpu_at_begin_s_ = read_machine_cpu_s();
}

void CommandCpuTime::end(StatRun& run) {
  const std::optional<double> machine_cpu_at_end_s = read_machine_cpu_s();
  if (machine_cpu_at_begin_s_ && machine_cpu_at_end_s)
    run.machine_cpu_s = std::max(*machine_cpu_at_end_s - *machine_cpu_at_begin_s_, 0.0);
  if (measured_subject_.attached_pid) {
    update_attached_cpu_time();
  } else if (measured_subject_.has_command) {
    subject_cpu_latest_s_ = descendants_cpu_s();
    const UserSystemTime finished_children_cpu_time = read_finished_children_cpu_time();
    run.user_s = finished_children_cpu_time.user_s - user_cpu_at_begin_s_;
    run.system_s = finished_children_cpu_time.system_s - system_cpu_at_begin_s_;
  }
  if (subject_cpu_latest_s_ && subject_cpu_at_begin_s_)
    run.process_cpu_s = std::max(*subject_cpu_latest_s_ - *subject_cpu_at_begin_s_, 0.0);

  const auto unknown = [&](std::string reason) { run.diagnostics.add({"no_process_share", 1, std::move(reason), ""}); };
  if (!run.machine_cpu_s) {
    unknown("the machine's CPU time cannot be read from /proc");
  } else if (!run.process_cpu_s && measured_subject_.attached_pid) {
    unknown("the process ended before its CPU time could be read");
  } else if (!run.process_cpu_s) {
    unknown("no command or process was given whose CPU time could be measured");
  } else if (std::max(*run.machine_cpu_s, *run.process_cpu_s) < kMinMachineCpuTime_s) {
    unknown("too little CPU time to compute the share of the command");
  } else {
    run.process_share = *run.process_cpu_s / std::max(*run.machine_cpu_s, *run.process_cpu_s);
  }
}

}  // namespace joulemap::session
