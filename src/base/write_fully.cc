// SPDX-License-Identifier: Apache-2.0
#include "base/write_fully.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

#include "base/small_file.h"

namespace joulemap {
namespace {

// While it lives, a SIGPIPE of this thread waits; one that our own write caused is taken away before it is let through.
class HeldSigpipe {
 public:
  HeldSigpipe() {
    sigemptyset(&only_sigpipe_);
    sigaddset(&only_sigpipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &only_sigpipe_, &original_);
  }
  ~HeldSigpipe() {
    const timespec at_once{};
    if (!was_pending_) sigtimedwait(&only_sigpipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &original_, nullptr);
  }
  HeldSigpipe(const HeldSigpipe&) = delete;
  HeldSigpipe& operator=(const HeldSigpipe&) = delete;

 private:
  sigset_t only_sigpipe_;
  sigset_t original_;
  bool was_pending_ = false;
};

}  // namespace

Status write_fully(int fd, std::string_view text, std::string_view name) {
  const HeldSigpipe held;
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("write to", name, errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return Done{};
}

}  // namespace joulemap
