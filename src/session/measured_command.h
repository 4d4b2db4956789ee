// SPDX-License-Identifier: Apache-2.0
//
// MeasuredCommand: the measured command, from its start to its end. It is forked first and executes only at
// execute_command(), once the measurement has begun. Signals that joulemap receives are forwarded to the command; the
// class blocks only in one ppoll(). Without a command, has_ended() is true once the attached process has ended or a
// signal has requested a stop. Main thread.
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
  // `signals` must outlive this object.
  explicit MeasuredCommand(BlockedSignals& signals) : signals_(signals) {}

  // Forks; nothing is executed before execute_command(). `environment` ("NAME=value") is added to the environment of
  // the command.
  Status prepare(std::span<const std::string> command, std::span<const std::string> environment = {});
  Status attach(pid_t pid);
  Status execute_command();

  // Handles signals and the end of the command. Returns after an event or at deadline_ns of CLOCK_MONOTONIC.
  void wait_until(std::int64_t deadline_ns);

  bool has_ended() const { return has_ended_; }
  bool stop_requested() const { return stop_requested_; }  // joulemap received a signal that requests termination
  const std::optional<ExitStatus>& exit_status() const { return exit_status_; }

 private:
  void handle_signals();
  void reap_child();

  BlockedSignals& signals_;
  FileDescriptor attached_pidfd_;
  std::optional<ChildProcess> child_;
  FileDescriptor child_pidfd_;  // readable once the child has ended
  std::optional<ExitStatus> exit_status_;
  bool has_ended_ = false;
  bool stop_requested_ = false;
};

}  // namespace joulemap::session
