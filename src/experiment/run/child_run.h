// SPDX-License-Identifier: Apache-2.0
//
// Runs one program to its end, its output into files: the recorder of a row, or a preflight. A first request to stop is
// passed on to it; a second, or a time limit that is passed by ten seconds, kills it and all that it started. Dies with
// us. Main thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/result.h"
#include "base/signal_gate.h"

namespace joulemap::experiment {

struct ChildRun {
  std::vector<std::string> command;
  std::string directory;
  std::vector<std::string> environment;  // "NAME=value", added to ours
  std::string output_path;               // must not exist yet
  std::string error_path;
  std::optional<double> time_limit_s;
};

struct ChildEnd {
  ExitStatus exit;
  bool asked_to_stop = false;
  bool timed_out = false;
};

// `on_tick` is told how many seconds it runs, about once a second. Fails where it cannot be started.
Result<ChildEnd> run_child(SignalGate& signals, const ChildRun& run, const std::function<void(double)>& on_tick);

}  // namespace joulemap::experiment
