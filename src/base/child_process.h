// SPDX-License-Identifier: Apache-2.0
//
// ChildProcess: a command that is forked first and let go later, so that a measurement can begin in between.
//
//   Result<ChildProcess> child = ChildProcess::prepare(argv, signal_mask);  // forked, waiting, nothing executed yet
//   begin_measuring();
//   Status started = child->release();                                      // execvp; says so if that failed
//
// The owner waits for the process itself (waitpid), because it also waits for other events. A child that is never
// released ends without having run anything. Not thread-safe. Between fork and
// exec it does only what is safe while other threads of ours run.
#pragma once

#include <csignal>
#include <optional>
#include <span>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap {

// Where and how a child runs, where that is not as we do.
struct ChildSetting {
  std::string directory = {};  // empty: ours
  int output = -1;             // descriptors that become its stdout and stderr; -1: ours
  int error_output = -1;
  int signal_when_we_end = 0;  // what it gets when we die, however we do; 0: nothing
};

class ChildProcess {
 public:
  // `signal_mask` is what the command shall run with (ours may block signals that we wait for); `environment`
  // ("NAME=value") is added to ours, and wins.
  static Result<ChildProcess> prepare(std::span<const std::string> argv, const sigset_t& signal_mask,
                                      std::span<const std::string> environment = {}, const ChildSetting& setting = {});

  pid_t pid() const { return pid_; }

  // Executes the command. Fails with command_not_found or command_not_executable; the child has then ended and been
  // waited for.
  Status release();

 private:
  ChildProcess(pid_t pid, std::string name, FileDescriptor go, FileDescriptor failure)
      : pid_(pid), name_(std::move(name)), go_(std::move(go)), failure_(std::move(failure)) {}

  pid_t pid_;
  std::string name_;
  FileDescriptor go_;       // one byte written here lets the child execute
  FileDescriptor failure_;  // closed by a successful exec, else carries errno
};

// How a command ended, from the status of waitpid.
struct ExitStatus {
  int code = 0;               // as a shell would say it: its own, or 128 + the signal
  std::optional<int> signal;  // the signal that killed it

  static ExitStatus from_wait_status(int wait_status);
};

}  // namespace joulemap
