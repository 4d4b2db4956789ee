// SPDX-License-Identifier: Apache-2.0
#include "sampling/command_cpu_time.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/cpu_times.h"

namespace joulemap::sampling {
namespace {

// The kernel counts the machine's time in ticks of 10 ms on each CPU: below this a ratio means nothing.
constexpr double kLeastMachineTime_s = 0.05;

bool has_living_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

// Everything below this process, the finished and the living.
double all_children_cpu_s() {
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

std::optional<double> machine_cpu_s() {
  const Result<MachineCpuTime> time = read_machine_cpu_time(SystemRoot{});
  if (!time) return std::nullopt;
  return time->busy_s;
}

}  // namespace

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

void CommandCpuTime::begin(bool child_is_new) {
  const UserSystemTime finished = finished_children_cpu_time();
  user_at_begin_s_ = finished.user_s;
  system_at_begin_s_ = finished.system_s;
  if (watched_) {
    refresh();
    process_at_begin_s_ = process_now_s_.value_or(0);
  } else {
    process_at_begin_s_ = child_is_new ? finished.user_s + finished.system_s : all_children_cpu_s();
  }
  machine_at_begin_s_ = machine_cpu_s();
}

void CommandCpuTime::refresh() {
  if (!watched_) return;
  if (const Result<double> tree_s = process_tree_cpu_s(read_all_process_cpu_times(), *watched_))
    process_now_s_ = *tree_s;
}

void CommandCpuTime::end(StatRun& run) {
  const std::optional<double> machine_at_end_s = machine_cpu_s();
  if (watched_) {
    refresh();
  } else {
    process_now_s_ = all_children_cpu_s();
    const UserSystemTime finished = finished_children_cpu_time();
    run.user_s = finished.user_s - user_at_begin_s_;
    run.system_s = finished.system_s - system_at_begin_s_;
  }
  if (process_now_s_) run.process_cpu_s = std::max(*process_now_s_ - process_at_begin_s_, 0.0);
  if (machine_at_begin_s_ && machine_at_end_s)
    run.machine_cpu_s = std::max(*machine_at_end_s - *machine_at_begin_s_, 0.0);
  if (!run.process_cpu_s || !run.machine_cpu_s) {
    run.diagnostics.add({"no_process_share", 1, "CPU times cannot be read from /proc", "mount /proc"});
  } else if (std::max(*run.machine_cpu_s, *run.process_cpu_s) < kLeastMachineTime_s) {
    run.diagnostics.add(
        {"no_process_share", 1, "too little CPU time passed to tell the command's share of it", ""});
  } else {
    run.process_share = *run.process_cpu_s / std::max(*run.machine_cpu_s, *run.process_cpu_s);
  }
}

}  // namespace joulemap::sampling
