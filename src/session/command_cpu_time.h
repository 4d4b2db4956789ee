// SPDX-License-Identifier: Apache-2.0
//
// CommandCpuTime: CPU time of a command (or an attached process) and all its descendants between two moments, and of
// the whole machine. Their ratio is the process share, which reveals other load on the machine.
//
// Orphaned descendants are reparented to this process (it is their subreaper), so that their time is counted.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "model/stat_result.h"

namespace joulemap::session {

// Makes this process the subreaper of orphaned descendants. Call once, before the first command.
void become_subreaper();

// CPU time of all descendants of this process, finished and alive.
double descendants_cpu_s();
// CPU time of another process and its descendants, without joulemap itself if it is a child of that process. None once
// the process has ended.
std::optional<double> attached_process_tree_cpu_s(pid_t pid);

// The process tree whose CPU time is compared with the machine's; neither: no process share.
struct CpuTimeSubject {
  bool has_command = false;
  std::optional<pid_t> attached_pid;  // attached process instead of the command
};

class CommandCpuTime {
 public:
  // Construct before the command is forked: the constructor checks whether this process has other children.
  explicit CommandCpuTime(CpuTimeSubject subject);

  // Begins the measurement. `is_command_running`: the command was already running, because of --delay.
  void begin(bool is_command_running);
  // Stores the time of an attached process while it lives: its own at every call, that of its descendants once a
  // second, because finding them requires a search of /proc.
  void update_attached_cpu_time();
  // Fills in the CPU times of the run, or diagnostics when they are unavailable.
  void end(StatRun& run);

 private:
  std::optional<double> attached_cpu_s() const;

  CpuTimeSubject measured_subject_;
  bool had_other_children_ = false;
  std::optional<double> subject_cpu_at_begin_s_;
  double descendants_cpu_s_ = 0;
  std::int64_t next_process_search_ns_ = 0;
  std::optional<double> subject_cpu_latest_s_;  // latest CPU time of the subject, once read since begin()
  double user_cpu_at_begin_s_ = 0;
  double system_cpu_at_begin_s_ = 0;
  std::optional<double> machine_cpu_at_begin_s_;
};

}  // namespace joulemap::session
