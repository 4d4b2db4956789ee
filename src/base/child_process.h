// SPDX-License-Identifier: Apache-2.0
//
// ChildProcess: a command that is forked first and executed later, so that a measurement can begin in between.
//
//   Result<ChildProcess> child = ChildProcess::prepare(argv, signal_mask);  // forked, waiting, nothing executed yet
//   begin_measuring();
//   Status started = child->execute();                                      // execvp; returns an error if it fails
//
// The owner calls waitpid itself, because it also waits for other events. Without a call of execute() the child exits
// without executing anything. Not thread-safe. Between fork and exec the child makes only calls that are safe in a
// multi-threaded process.
#pragma once

#include <csignal>
#include <optional>
#include <span>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap {

// How a child's environment differs from that of this process.
struct ChildProcessOptions {
  std::string directory = {};  // working directory; empty: inherited
  int stdout_fd = -1;          // descriptors that become stdout and stderr of the child; -1: inherited
  int stderr_fd = -1;
  int parent_death_signal = 0;  // signal sent to the child when this process dies for any reason; 0: none
};

class ChildProcess {
 public:
  // `signal_mask` is the signal mask of the command (this process may block signals that it polls for). `environment`
  // ("NAME=value") is added to the inherited environment and overrides it.
  static Result<ChildProcess> prepare(std::span<const std::string> argv, const sigset_t& signal_mask,
                                      std::span<const std::string> environment = {},
                                      const ChildProcessOptions& options = {});

  pid_t pid() const { return pid_; }

  // Executes the command. Fails with command_not_found or command_not_executable; the child has then exited and been
  // reaped.
  Status execute();

 private:
  ChildProcess(pid_t pid, std::string name, FileDescriptor start_pipe, FileDescriptor failure)
      : pid_(pid), name_(std::move(name)), start_pipe_(std::move(start_pipe)), exec_error_pipe_(std::move(failure)) {}

  pid_t pid_;
  std::string name_;
  FileDescriptor start_pipe_;       // a byte written here makes the child call exec
  FileDescriptor exec_error_pipe_;  // closed by a successful exec, otherwise carries errno
};

// How a command ended, decoded from the status of waitpid.
struct ExitStatus {
  int code = 0;               // as shells report it: the exit code, or 128 + signal number
  std::optional<int> signal;  // signal that killed the command

  static ExitStatus from_wait_status(int wait_status);
};

}  // namespace joulemap
