// SPDX-License-Identifier: Apache-2.0
//
// ProgressLine: shows on stderr which share of a long task is done and how long the rest will take. Shows nothing in
// the first second, with -q, or if stderr is not a terminal. The destructor clears the line. One owner; the callback
// may be called from any thread, one call at a time.
#pragma once

#include <cstdint>
#include <string>

#include "base/progress.h"
#include "cli/command.h"

namespace joulemap::cli {

class ProgressLine {
 public:
  // `activity`: name of the task, such as "reading trace.json".
  ProgressLine(std::string activity, const CommandLine& line);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Callback to which the task passes the share that is done, 0 to 1. `this` must outlive it. Empty function if nothing
  // is shown.
  ProgressCallback make_progress_callback();

 private:
  void show(double share);

  std::string activity_;
  bool is_shown_;  // stderr is a terminal, and -q is not set
  std::int64_t start_time_ns_;
  std::int64_t last_drawn_ns_ = 0;  // when the line was last drawn; 0: never
};

}  // namespace joulemap::cli
