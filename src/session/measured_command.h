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

#include "base/child_process.h"
#include "base/file_descriptor.h"
#include "base/result.h"
#include "base/signal_gate.h"

namespace joulemap::session {

class MeasuredCommand {
 public:
  // `signals` must outlive it.
  explicit MeasuredCommand(SignalGate& signals) : signals_(signals) {}

  // Forks; nothing is executed before release(). `environment` ("NAME=value") is added to the command's.
  Status prepare(std::span<const std::string> command, std::span<const std::string> environment = {});
  Status watch(pid_t pid);
  Status release();

  // Returns at an event or at deadline_ns of CLOCK_MONOTONIC.
  void wait_until(std::int64_t deadline_ns);

  bool ended() const { return ended_; }
  bool asked_to_stop() const { return asked_to_stop_; }  // a signal requests that we stop, too
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
