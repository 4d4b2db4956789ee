// SPDX-License-Identifier: Apache-2.0
//
// Implements `joulemap stat`: runs the command the requested number of times (or attaches to a process, or measures the
// machine), samples while it runs, forwards signals, and returns the result. Main thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/stat_result.h"
#include "sampling/meter.h"

namespace joulemap::session {

struct StatOptions {
  std::vector<std::string> command;   // empty: measures until the attached process ends or a signal requests the end
  std::optional<pid_t> attached_pid;  // process whose CPU time is compared with the machine's, instead of the command's
  int repetitions = 1;
  std::int64_t delay_ns = 0;     // from the start of the command to the start of the measurement
  std::int64_t interval_ns = 0;  // 0: no interval lines
  bool keep_intervals = false;   // store the intervals in the result, besides calling on_interval
  std::function<void(const StatInterval&)> on_interval;
};

// Fails only before the command has started for the first time.
Result<StatResult> measure_command(sampling::Meter& meter, const StatOptions& options);

}  // namespace joulemap::session
