// SPDX-License-Identifier: Apache-2.0
//
// One run of `joulemap stat`: starts the command (or watches a process, or just the machine), samples while
// it lasts, passes signals on to it, and gives back what was found. Main thread; the only waiting is in one
// poll().
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/signal_gate.h"
#include "model/stat_result.h"
#include "sampling/meter.h"

namespace joulemap::sampling {

struct StatOptions {
  std::vector<std::string> command;  // empty: until the watched process ends or a signal comes
  std::optional<pid_t> pid;          // whose CPU time is set against the machine's, instead of the command's
  std::int64_t delay_ns = 0;         // from the command's start to the beginning of the measurement
  std::int64_t interval_ns = 0;      // 0: no interval lines
  std::function<void(const StatInterval&)> on_interval;
};

struct StatOutcome {
  StatRun run;
  bool interrupted = false;  // somebody wants us to stop: no further repetitions
};

// Fails only before the command has started; the error's code then tells the exit code (see
// exit_code_of_start_failure).
Result<StatOutcome> measure_once(Meter& meter, SignalGate& signals, const StatOptions& options);

}  // namespace joulemap::sampling
