// SPDX-License-Identifier: Apache-2.0
//
// Command: the program that runs on the simulated machine, as a child process. Forwards SIGINT and SIGTERM to it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace joulemap::simulated {

// Blocks these signals until Command::wait_until_ended. Call it before starting any thread: threads inherit the mask.
void block_signals();

class Command {
 public:
  // Fails with not_found or permission if it cannot be started.
  static Result<Command> start(const std::vector<std::string>& arguments);

  // The child stays a zombie, so that its CPU clock can be read once more.
  void wait_until_ended() const;

  // Reaps the child. Returns its exit code, or 128 + the signal that killed it.
  int exit_code() const;

 private:
  explicit Command(pid_t pid) : pid_(pid) {}
  bool has_ended() const;

  pid_t pid_;
};

}  // namespace joulemap::simulated
