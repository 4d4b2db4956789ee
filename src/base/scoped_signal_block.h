// SPDX-License-Identifier: Apache-2.0
//
// ScopedSignalBlock: blocks all signals in this thread while it exists. Threads started meanwhile inherit the mask and
// keep it. Used when starting joulemap's threads and those of loaded libraries, which must not receive signals meant
// for the main thread. (A thread that does not block SIGCHLD consumes it before the signalfd of another thread sees
// it.)
#pragma once

#include <pthread.h>

#include <csignal>

namespace joulemap {

class ScopedSignalBlock {
 public:
  ScopedSignalBlock() {
    sigset_t all_signals;
    sigfillset(&all_signals);
    pthread_sigmask(SIG_SETMASK, &all_signals, &previous_mask_);
  }
  ScopedSignalBlock(const ScopedSignalBlock&) = delete;
  ScopedSignalBlock& operator=(const ScopedSignalBlock&) = delete;
  ~ScopedSignalBlock() { pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr); }

 private:
  sigset_t previous_mask_;
};

}  // namespace joulemap
