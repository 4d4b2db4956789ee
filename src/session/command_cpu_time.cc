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
constexpr double kMinMachineTime_s = 0.05;

bool has_living_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

std::optional<double> machine_cpu_s() {
  const Result<MachineCpuTime> time = read_machine_cpu_time(SystemRoot{});
  if (!time) return std::nullopt;
  return time->busy_s;
}

}  // namespace

double descendants_cpu_s() {
  const UserSystemTime finished = finished_children_cpu_time();
  double total_s = finished.user_s + finished.system_s;
  if (!has_living_children()) return total_s;
  const std::vector<ProcessCpuTime> processes = read_all_process_cpu_times();
  for (const ProcessCpuTime& process : processes) {
    if (process.parent != ::getpid()) continue;
    if (const Result<double> tree_s = process_tree_cpu_s(processes, process.pid)) total_s += *tree_s;
  }
  return total_s;
}

std::optional<double> attached_tree_cpu_s(pid_t pid) {
  const std::vector<ProcessCpuTime> processes = read_all_process_cpu_times();
  const Result<double> tree_s = process_tree_cpu_s(processes, pid);
  if (!tree_s) return std::nullopt;
  const Result<double> own_s = process_tree_cpu_s(processes, ::getpid());
  return *tree_s - (::getppid() == pid && own_s ? *own_s : 0);
}

void become_subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

CommandCpuTime::CommandCpuTime(CpuTimeSubject subject)
    : subject_(subject), had_other_children_(has_living_children()) {}

std::optional<double> CommandCpuTime::attached_cpu_s() const {
  const Result<ProcessCpuTime> process = read_process_cpu_time(*subject_.attached_pid);
  if (!process) return std::nullopt;
  return process->own_s + process->children_s + descendants_s_;
}

void CommandCpuTime::refresh() {
  if (!subject_.attached_pid) return;
  if (monotonic_ns() >= next_search_ns_) {
    const std::vector<ProcessCpuTime> processes = read_all_process_cpu_times();
    const Result<double> tree_s = process_tree_cpu_s(processes, *subject_.attached_pid);
    const auto own = std::find_if(processes.begin(), processes.end(),
                                  [&](const ProcessCpuTime& process) { return process.pid == *subject_.attached_pid; });
    if (tree_s) descendants_s_ = *tree_s - own->own_s - own->children_s;
    next_search_ns_ = monotonic_ns() + kNanosecondsPerSecond;
  }
  if (const std::optional<double> now_s = attached_cpu_s()) process_latest_s_ = now_s;
}

void CommandCpuTime::begin(bool command_runs) {
  const UserSystemTime finished = finished_children_cpu_time();
  user_at_begin_s_ = finished.user_s;
  system_at_begin_s_ = finished.system_s;
  if (subject_.attached_pid) {
    refresh();
    process_at_begin_s_ = std::exchange(process_latest_s_, std::nullopt);
  } else if (subject_.has_command) {
    const bool search = command_runs || had_other_children_;
    process_at_begin_s_ = search ? descendants_cpu_s() : finished.user_s + finished.system_s;
  }
  machine_at_begin_s_ = machine_cpu_s();
}

void CommandCpuTime::end(StatRun& run) {
  const std::optional<double> machine_at_end_s = machine_cpu_s();
  if (machine_at_begin_s_ && machine_at_end_s)
    run.machine_cpu_s = std::max(*machine_at_end_s - *machine_at_begin_s_, 0.0);
  if (subject_.attached_pid) {
    refresh();
  } else if (subject_.has_command) {
    process_latest_s_ = descendants_cpu_s();
    const UserSystemTime finished = finished_children_cpu_time();
    run.user_s = finished.user_s - user_at_begin_s_;
    run.system_s = finished.system_s - system_at_begin_s_;
  }
  if (process_latest_s_ && process_at_begin_s_)
    run.process_cpu_s = std::max(*process_latest_s_ - *process_at_begin_s_, 0.0);

  const auto unknown = [&](std::string why) { run.diagnostics.add({"no_process_share", 1, std::move(why), ""}); };
  if (!run.machine_cpu_s) {
    unknown("the machine's CPU time cannot be read from /proc");
  } else if (!run.process_cpu_s && subject_.attached_pid) {
    unknown("the process ended before its CPU time could be read");
  } else if (!run.process_cpu_s) {
    unknown("no command or process was given whose CPU time could be measured");
  } else if (std::max(*run.machine_cpu_s, *run.process_cpu_s) < kMinMachineTime_s) {
    unknown("too little CPU time to compute the share of the command");
  } else {
    run.process_share = *run.process_cpu_s / std::max(*run.machine_cpu_s, *run.process_cpu_s);
  }
}

}  // namespace joulemap::session
