// SPDX-License-Identifier: Apache-2.0
//
// Command: the program that runs on the simulated machine, as a child of this one. SIGINT and SIGTERM that
// are sent to us are handed on to it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace joulemap::simulated {

// From here on these signals wait for Command::wait_until_ended. Call before any thread is started: they
// inherit it.
void hold_back_signals();

class Command {
 public:
  // not_found or permission when it cannot be started.
  static Result<Command> start(const std::vector<std::string>& arguments);

  // It stays a zombie, so that its CPU clock can be read once more.
  void wait_until_ended() const;

  // Buries it. Its exit code, or 128 + the signal that killed it.
  int exit_code() const;

 private:
  explicit Command(pid_t pid) : pid_(pid) {}
  bool has_ended() const;

  pid_t pid_;
};

}  // namespace joulemap::simulated
