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
// CPU time of an attached process and its descendants, without joulemap itself if it is its child. Reading the time of
// the process is cheap; its descendants are found by a search of /proc, at the first read and then at most once in each
// search period.
class AttachedProcessCpuTime {
 public:
  AttachedProcessCpuTime(pid_t pid, std::int64_t search_period_ns) : pid_(pid), search_period_ns_(search_period_ns) {}

  // None once the process has ended and been reaped.
  std::optional<double> read_cpu_s();
  // Makes the next read search /proc, even if the period has not passed.
  void search_at_next_read() { next_search_ns_ = 0; }

 private:
  void search_descendants();

  pid_t pid_;
  std::int64_t search_period_ns_;
  std::int64_t next_search_ns_ = 0;
  double descendants_cpu_at_search_s_ = 0;  // of those alive and those reaped
};

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
  // Stores the time of an attached process while it lives.
  void update_attached_cpu_time();
  // Fills in the CPU times of the run, or diagnostics when they are unavailable.
  void end(StatRun& run);

 private:
  CpuTimeSubject measured_subject_;
  std::optional<AttachedProcessCpuTime> attached_cpu_time_;
  bool had_other_children_ = false;
  std::optional<double> subject_cpu_at_begin_s_;
  std::optional<double> subject_cpu_latest_s_;  // latest CPU time of the subject, once read since begin()
  double user_cpu_at_begin_s_ = 0;
  double system_cpu_at_begin_s_ = 0;
  std::optional<double> machine_cpu_at_begin_s_;
};

}  // namespace joulemap::session
