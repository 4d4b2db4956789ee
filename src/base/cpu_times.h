// SPDX-License-Identifier: Apache-2.0
//
// How much CPU time the machine, a process tree and its finished children have used, from /proc. The kernel counts
// it in ticks of 10 ms here; what the caller sees is seconds. Pure parsers with thin readers around them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/system_root.h"

namespace joulemap {

// Since boot, all CPUs together. Busy is everything but idle, waiting for input, and time stolen by the hypervisor.
struct MachineCpuTime {
  double busy_s = 0;
  int cpus = 0;
};

// Busy ticks of the first line of /proc/stat ("cpu  100 20 ..."); nothing when it is malformed. Allocates nothing.
std::optional<std::uint64_t> parse_busy_ticks(std::string_view proc_stat) noexcept;

Result<MachineCpuTime> parse_machine_cpu_time(std::string_view proc_stat, double ticks_per_second);
Result<MachineCpuTime> read_machine_cpu_time(const SystemRoot& root);

// One line of /proc/PID/stat. The command's name may contain anything, parentheses and line ends included.
struct ProcessCpuTime {
  pid_t pid = 0;
  pid_t parent = 0;
  double own_s = 0;       // user and system time of all its threads
  double children_s = 0;  // of descendants that have ended and been waited for
};

Result<ProcessCpuTime> parse_process_cpu_time(std::string_view proc_pid_stat, double ticks_per_second);

// One process of the real machine; not_found once it is gone.
Result<ProcessCpuTime> read_process_cpu_time(pid_t pid);

// All processes of the real machine.
std::vector<ProcessCpuTime> read_all_process_cpu_times();

// CPU time of `root` and everything below it: own time of the living plus what the dead have left to their parents.
// Nothing when `root` is not among the processes.
Result<double> process_tree_cpu_s(const std::vector<ProcessCpuTime>& processes, pid_t root);

// CPU time of the children of this process that have ended and been waited for, and of their children.
struct UserSystemTime {
  double user_s = 0;
  double system_s = 0;
};
UserSystemTime finished_children_cpu_time();

}  // namespace joulemap
