// SPDX-License-Identifier: Apache-2.0
//
// CommandCpuTime: how much CPU time a command (or a watched process) and all its descendants used between two
// moments, and how much the whole machine used: their ratio is the process share that shows a busy neighbour.
//
// Descendants that outlive their parent come to us (we are their subreaper), so that nothing a command starts is
// lost.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "model/stat_result.h"

namespace joulemap::session {

// Makes this process the parent of orphaned descendants. Once, before the first command.
void adopt_orphans();

// CPU time of everything below this process, the finished and the living.
double all_children_cpu_s();
// Of another process and everything below it but for us, who may be its child. Nothing once it is gone.
std::optional<double> watched_tree_cpu_s(pid_t pid);

// Whose time is set against the machine's.
struct CpuTimeSubject {
  bool has_command = false;
  std::optional<pid_t> watched;  // another process instead of the command
};

class CommandCpuTime {
 public:
  // Made before the command is forked: it looks whether other children live already.
  explicit CommandCpuTime(CpuTimeSubject subject);

  // `command_runs`: it was started before, because of a delay.
  void begin(bool command_runs);
  // Remembers a watched process's time while it lives: its own at every call, its descendants' once a second,
  // because finding them means to search /proc.
  void refresh();
  // Fills in the CPU times of the run, and its diagnostics where they are not to be had.
  void end(StatRun& run);

 private:
  std::optional<double> watched_cpu_s() const;

  CpuTimeSubject subject_;
  bool had_children_ = false;
  std::optional<double> process_at_begin_s_;
  double descendants_s_ = 0;
  std::int64_t next_search_ns_ = 0;
  std::optional<double> process_now_s_;  // after begin
  double user_at_begin_s_ = 0;
  double system_at_begin_s_ = 0;
  std::optional<double> machine_at_begin_s_;
};

}  // namespace joulemap::session
