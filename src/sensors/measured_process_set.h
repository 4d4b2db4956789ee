// SPDX-License-Identifier: Apache-2.0
//
// MeasuredProcessSet: the set of measured processes. A process belongs to it if
//
// - it is a root (the recorder, the process of -p) or a descendant of one,
// - or it was started with the recording's environment variable, whatever its parent is now: daemons, tasks of a job
//   scheduler, ranks of the same run that were started under another `joulemap record`,
// - or it has a file of the recording's folder open, because it has joined the recording,
// - or it belonged to the set before: its parent may have ended since.
//
// Reads /proc only and uses its pids. contains() allocates nothing and remembers the processes of the set; one thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/process_tree.h"

namespace joulemap::sensors {

struct MeasuredProcessCriteria {
  std::vector<pid_t> root_pids = {};        // measured processes in addition to this one
  std::string environment_assignment = {};  // environment variable "NAME=value"; empty: none
  std::string recording_folder = {};        // absolute path without symbolic links; empty: none
};

class MeasuredProcessSet {
 public:
  explicit MeasuredProcessSet(MeasuredProcessCriteria measured = {}, const char* proc = kProcFolder);

  bool contains(pid_t pid) noexcept;
  const char* proc_path() const { return proc_path_; }

 private:
  bool matches_criteria(pid_t pid) const noexcept;

  struct ProcessIdentity {
    pid_t pid = 0;
    std::uint64_t start_ticks = 0;
  };
  MeasuredProcessCriteria criteria_;
  const char* proc_path_;
  std::array<ProcessIdentity, 128> recent_members_{};  // processes of the set; a ring buffer: the oldest is replaced
  std::size_t next_ring_index_ = 0;
};

}  // namespace joulemap::sensors
