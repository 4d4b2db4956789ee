// SPDX-License-Identifier: Apache-2.0
//
// BlockedSignals: while it exists, signals that end or control a run are blocked and readable from a pollable
// descriptor. Start children with original_mask(). At most one instance; main thread.
#pragma once

#include <sys/signalfd.h>

#include <csignal>
#include <optional>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap {

class BlockedSignals {
 public:
  static Result<BlockedSignals> open();
  BlockedSignals(BlockedSignals&& other_signals) noexcept;
  BlockedSignals& operator=(BlockedSignals&&) = delete;
  ~BlockedSignals();

  int fd() const { return fd_.get(); }
  const sigset_t& original_mask() const { return original_mask_; }

  // The next pending signal, or nullopt.
  std::optional<signalfd_siginfo> next();

 private:
  BlockedSignals(FileDescriptor fd, const sigset_t& original_mask)
      : fd_(std::move(fd)), original_mask_(original_mask) {}

  FileDescriptor fd_;
  sigset_t original_mask_;
};

// Whether the signal requests termination: SIGINT, SIGTERM, SIGQUIT, SIGHUP.
bool is_termination_signal(const signalfd_siginfo& signal);

// Whether a key (Ctrl-C) or the end of the terminal caused the signal. The kernel has then sent it to the measured
// command, too, so it must not be forwarded.
bool is_signal_from_terminal(const signalfd_siginfo& signal);

}  // namespace joulemap
