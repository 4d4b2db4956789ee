// SPDX-License-Identifier: Apache-2.0
#include "base/write_fully.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

#include "base/small_file.h"

namespace joulemap {
namespace {

// Blocks SIGPIPE and SIGXFSZ (file beyond `ulimit -f`) of this thread while it exists. The destructor consumes those
// that our own write raised, then restores the signal mask.
class BlockedWriteSignals {
 public:
  BlockedWriteSignals() {
    sigset_t pending_signals;
    sigpending(&pending_signals);
    sigemptyset(&blocked_signals_);
    sigemptyset(&consumable_signals_);
    for (const int signal : {SIGPIPE, SIGXFSZ}) {
      sigaddset(&blocked_signals_, signal);
      if (sigismember(&pending_signals, signal) == 0) sigaddset(&consumable_signals_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &blocked_signals_, &original_mask_);
  }
  ~BlockedWriteSignals() {
    const timespec zero_timeout{};
    while (sigtimedwait(&consumable_signals_, nullptr, &zero_timeout) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &original_mask_, nullptr);
  }
  BlockedWriteSignals(const BlockedWriteSignals&) = delete;
  BlockedWriteSignals& operator=(const BlockedWriteSignals&) = delete;

 private:
  sigset_t blocked_signals_;
  sigset_t consumable_signals_;  // signals that were not pending before: only our own write can raise them
  sigset_t original_mask_;
};

}  // namespace

Status write_fully(int fd, std::string_view text, std::string_view name) {
  const BlockedWriteSignals blocked_signals;
  while (!text.empty()) {
    const ssize_t written_size = ::write(fd, text.data(), text.size());
    if (written_size < 0 && errno == EINTR) continue;
    if (written_size < 0) return system_error("write to", name, errno);
    text.remove_prefix(static_cast<std::size_t>(written_size));
  }
  return Done{};
}

}  // namespace joulemap
