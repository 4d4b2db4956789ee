// SPDX-License-Identifier: Apache-2.0
//
// SignalShield: blocks all signals in this thread while it exists. Threads started meanwhile inherit the mask and keep
// it. Used for our threads and those of loaded libraries, which must not receive the program's signals. (A thread that
// does not block SIGCHLD consumes it before the signalfd of another thread sees it.)
#pragma once

#include <pthread.h>

#include <csignal>

namespace joulemap {

class SignalShield {
 public:
  SignalShield() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalShield(const SignalShield&) = delete;
  SignalShield& operator=(const SignalShield&) = delete;
  ~SignalShield() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace joulemap
