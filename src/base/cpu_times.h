// SPDX-License-Identifier: Apache-2.0
//
// CPU time in seconds used by the machine, a process tree and finished children, read from /proc (the kernel counts in
// ticks, typically 10 ms). Pure parsers, each with a thin reader around it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/system_root.h"

namespace joulemap {

// Totals over all CPUs since boot. Busy excludes idle, iowait and time stolen by the hypervisor.
struct MachineCpuTime {
  double busy_s = 0;
  int cpus = 0;
};

// Busy ticks from the first line of /proc/stat ("cpu  100 20 ..."); nullopt if malformed. Does not allocate.
std::optional<std::uint64_t> parse_busy_ticks(std::string_view proc_stat) noexcept;

Result<MachineCpuTime> parse_machine_cpu_time(std::string_view proc_stat, double ticks_per_second);
Result<MachineCpuTime> read_machine_cpu_time(const SystemRoot& root);

// One line of /proc/PID/stat. The command name may contain any character, including parentheses and newlines.
struct ProcessCpuTime {
  pid_t pid = 0;
  pid_t parent = 0;
  double process_cpu_s = 0;          // user and system time of all its threads
  double reaped_children_cpu_s = 0;  // CPU time of descendants that have ended and been reaped
};

Result<ProcessCpuTime> parse_process_cpu_time(std::string_view proc_pid_stat, double ticks_per_second);

// One process of the real machine; not_found after it has ended.
Result<ProcessCpuTime> read_process_cpu_time(pid_t pid);

// All processes of the real machine.
std::vector<ProcessCpuTime> read_all_process_cpu_times();

// CPU time of `root` and its descendants: own time of live processes plus the time of reaped children that their
// parents hold. Fails if `root` is not among the processes.
Result<double> process_tree_cpu_s(const std::vector<ProcessCpuTime>& processes, pid_t root);

// CPU time of the ended and reaped children of this process, and of their descendants.
struct UserSystemTime {
  double user_s = 0;
  double system_s = 0;
};
UserSystemTime read_finished_children_cpu_time();

}  // namespace joulemap
