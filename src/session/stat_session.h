// SPDX-License-Identifier: Apache-2.0
//
// What `joulemap stat` does: starts the command as often as asked (or watches a process, or just the machine), samples while
// it lasts, passes signals on to it, and gives back what was found. Main thread; the only waiting is in one poll().
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
  std::vector<std::string> command;  // empty: until the watched process ends or a signal comes
  std::optional<pid_t> pid;          // whose CPU time is set against the machine's, instead of the command's
  int repeat = 1;
  std::int64_t delay_ns = 0;     // from the command's start to the beginning of the measurement
  std::int64_t interval_ns = 0;  // 0: no interval lines
  bool keep_intervals = false;   // in the result, besides handing them to on_interval
  std::function<void(const StatInterval&)> on_interval;
};

// Fails only before the command has started for the first time.
Result<StatResult> measure(sampling::Meter& meter, const StatOptions& options);

}  // namespace joulemap::session
