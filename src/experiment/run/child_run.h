// SPDX-License-Identifier: Apache-2.0
//
// Runs one program to its end with its output in files: the recorder of a row, or a preflight. The first signal that
// requests a stop is forwarded to the child. At the time limit the child gets SIGTERM. A second signal, or ten seconds
// past the time limit, kills the child and its descendants. If this process dies, the child gets SIGTERM. Main thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/blocked_signals.h"
#include "base/child_process.h"
#include "base/result.h"

namespace joulemap::experiment {

struct ChildCommand {
  std::vector<std::string> command;
  std::string directory;
  std::vector<std::string> environment;  // "NAME=value", added to this process's environment
  std::string output_path;               // must not exist yet
  std::string error_path;
  std::optional<double> time_limit_s;
};

struct ChildResult {
  ExitStatus exit_status;
  bool stop_requested = false;
  bool has_timed_out = false;
};

// Calls `on_tick` about once a second with the elapsed seconds. Fails if the program cannot be started.
Result<ChildResult> run_child(BlockedSignals& signals, const ChildCommand& run,
                              const std::function<void(double)>& on_tick);

}  // namespace joulemap::experiment
