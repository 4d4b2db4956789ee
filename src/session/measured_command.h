// SPDX-License-Identifier: Apache-2.0
//
// MeasuredCommand: the measured command, from its start to its end. It waits behind a gate until the measurement has
// begun. Signals that we receive are forwarded to it; the class blocks only in one poll(). Without a command it ends
// when an attached process does, or when a signal requests a stop. Main thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/blocked_signals.h"
#include "base/child_process.h"
#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap::session {

class MeasuredCommand {
 public:
  // `signals` must outlive it.
  explicit MeasuredCommand(BlockedSignals& signals) : signals_(signals) {}

  // Forks; nothing is executed before release(). `environment` ("NAME=value") is added to the command's.
  Status prepare(std::span<const std::string> command, std::span<const std::string> environment = {});
  Status attach(pid_t pid);
  Status release();

  // Returns at an event or at deadline_ns of CLOCK_MONOTONIC.
  void wait_until(std::int64_t deadline_ns);

  bool ended() const { return ended_; }
  bool stop_requested() const { return stop_requested_; }  // a signal requests that we stop, too
  const std::optional<ExitStatus>& exit_status() const { return exit_status_; }

 private:
  void handle_signals();
  void reap();

  BlockedSignals& signals_;
  FileDescriptor attached_process_;
  std::optional<ChildProcess> child_;
  FileDescriptor child_pidfd_;  // readable once it has ended
  std::optional<ExitStatus> exit_status_;
  bool ended_ = false;
  bool stop_requested_ = false;
};

}  // namespace joulemap::session
