// SPDX-License-Identifier: Apache-2.0
//
// WatchedCommand: the command that is being measured, from its start to its end. It waits behind a gate until the
// measurement has begun; signals that come to us are passed on to it; the only waiting is in one poll(). Without a command
// it ends when a watched process does, or when a signal asks us to stop. Main thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/child_process.h"
#include "base/file_descriptor.h"
#include "base/result.h"
#include "base/signal_gate.h"

namespace joulemap::session {

class WatchedCommand {
 public:
  // `signals` outlives it. `watched`: a process to wait for instead of a command.
  explicit WatchedCommand(SignalGate& signals) : signals_(signals) {}

  // Forks; nothing is executed before release(). `environment` ("NAME=value") is added to the command's.
  Status prepare(std::span<const std::string> command, std::span<const std::string> environment = {});
  Status watch(pid_t pid);
  Status release();

  // Until something happens or the monotonic clock shows deadline_ns.
  void wait_until(std::int64_t deadline_ns);

  bool ended() const { return ended_; }
  bool asked_to_stop() const { return asked_to_stop_; }  // somebody wants us to stop, too
  const std::optional<ExitStatus>& exit() const { return exit_; }

 private:
  void take_signals();
  void reap();

  SignalGate& signals_;
  FileDescriptor watched_;
  std::optional<ChildProcess> child_;
  FileDescriptor child_end_;  // readable once it has ended
  std::optional<ExitStatus> exit_;
  bool ended_ = false;
  bool asked_to_stop_ = false;
};

}  // namespace joulemap::session
