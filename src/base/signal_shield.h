// SPDX-License-Identifier: Apache-2.0
//
// SignalShield: while it lives, this thread takes no signals, and threads that it starts never will: they inherit the
// mask. For threads of ours and of libraries that we load, which must not take what is meant for the program. (A thread
// that does not block SIGCHLD swallows it before a signalfd of another thread sees it.)
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
