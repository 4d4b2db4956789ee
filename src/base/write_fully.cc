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
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t pending;
    sigpending(&pending);
    sigemptyset(&held_);
    sigemptyset(&ours_);
    for (const int signal : {SIGPIPE, SIGXFSZ}) {
      sigaddset(&held_, signal);
      if (sigismember(&pending, signal) == 0) sigaddset(&ours_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &held_, &original_);
  }
  ~HeldSignals() {
    const timespec at_once{};
    while (sigtimedwait(&ours_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &original_, nullptr);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t held_;
  sigset_t ours_;  // signals that were not pending before: only our own write can raise them
  sigset_t original_;
};

}  // namespace

Status write_fully(int fd, std::string_view text, std::string_view name) {
  const HeldSignals held;
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("write to", name, errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return Done{};
}

}  // namespace joulemap
