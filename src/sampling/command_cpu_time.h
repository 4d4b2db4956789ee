// SPDX-License-Identifier: Apache-2.0
//
// CommandCpuTime: how much CPU time a command (or a watched process) and all its descendants used between two
// moments, and how much the whole machine used: their ratio is the process share that shows a busy neighbour.
//
// Descendants that outlive their parent come to us (we are their subreaper), so that nothing a command starts
// is lost.
#pragma once

#include <sys/types.h>

#include <optional>

#include "model/stat_result.h"

namespace joulemap::sampling {

// Makes this process the parent of orphaned descendants. Once, before the first command.
void adopt_orphans();

class CommandCpuTime {
 public:
  // Of the children of this process; `watched` names another process instead.
  explicit CommandCpuTime(std::optional<pid_t> watched) : watched_(watched) {}

  // `child_is_new`: it was only just forked and nothing else of ours lives, so that /proc need not be
  // searched.
  void begin(bool child_is_new);
  // Remembers a watched process's time while it lives. Searches /proc: a few milliseconds on a busy machine.
  void refresh();
  // Fills in the CPU times of the run, and its diagnostics where they are not to be had.
  void end(StatRun& run);

 private:
  std::optional<pid_t> watched_;
  double process_at_begin_s_ = 0;
  std::optional<double> process_now_s_;
  double user_at_begin_s_ = 0;
  double system_at_begin_s_ = 0;
  std::optional<double> machine_at_begin_s_;
};

}  // namespace joulemap::sampling
