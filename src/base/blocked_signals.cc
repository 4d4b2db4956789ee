// SPDX-License-Identifier: Apache-2.0
#include "base/blocked_signals.h"

#include <cerrno>

#include "base/small_file.h"

namespace joulemap {

Result<BlockedSignals> BlockedSignals::open() {
  sigset_t blocked_mask;
  sigemptyset(&blocked_mask);
  for (const int signal : {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2})
    sigaddset(&blocked_mask, signal);
  FileDescriptor fd(::signalfd(-1, &blocked_mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.is_open()) return system_error("create", "a signal descriptor", errno);
  // With SIGCHLD ignored (inherited from the parent), the kernel would discard exit codes.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &action, nullptr);
  sigset_t previous_mask;
  if (::sigprocmask(SIG_BLOCK, &blocked_mask, &previous_mask) != 0) return system_error("block", "signals", errno);
  return BlockedSignals(std::move(fd), previous_mask);
}

BlockedSignals::BlockedSignals(BlockedSignals&& other_signals) noexcept
    : fd_(std::move(other_signals.fd_)), original_mask_(other_signals.original_mask_) {}

BlockedSignals::~BlockedSignals() {
  if (fd_.is_open()) ::sigprocmask(SIG_SETMASK, &original_mask_, nullptr);
}

std::optional<signalfd_siginfo> BlockedSignals::next() {
  signalfd_siginfo signal{};
  if (::read(fd_.get(), &signal, sizeof signal) != sizeof signal) return std::nullopt;
  return signal;
}

bool is_termination_signal(const signalfd_siginfo& signal) {
  const auto number = static_cast<int>(signal.ssi_signo);
  return number == SIGINT || number == SIGTERM || number == SIGQUIT || number == SIGHUP;
}

bool is_signal_from_terminal(const signalfd_siginfo& signal) { return signal.ssi_code == SI_KERNEL; }

}  // namespace joulemap
