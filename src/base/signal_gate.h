// SPDX-License-Identifier: Apache-2.0
//
// SignalGate: while it lives, the signals that end or steer a run do not interrupt this process but wait in a
// descriptor that can be polled. Children must be started with original_mask(). One at a time; main thread.
#pragma once

#include <sys/signalfd.h>

#include <csignal>
#include <optional>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap {

class SignalGate {
 public:
  static Result<SignalGate> open();
  SignalGate(SignalGate&& other) noexcept;
  SignalGate& operator=(SignalGate&&) = delete;
  ~SignalGate();

  int fd() const { return fd_.get(); }
  const sigset_t& original_mask() const { return original_mask_; }

  // The next waiting signal, if any.
  std::optional<signalfd_siginfo> next();

 private:
  SignalGate(FileDescriptor fd, const sigset_t& original_mask) : fd_(std::move(fd)), original_mask_(original_mask) {}

  FileDescriptor fd_;
  sigset_t original_mask_;
};

// Whether it asks a program to end: interrupt, terminate, quit, hang up.
bool asks_to_stop(const signalfd_siginfo& signal);

// Typed at the terminal: the kernel has sent it to the command already, it must not be passed on a second time.
bool came_from_terminal(const signalfd_siginfo& signal);

}  // namespace joulemap
