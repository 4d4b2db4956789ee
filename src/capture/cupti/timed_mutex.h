// SPDX-License-Identifier: Apache-2.0
//
// TimedMutex: a mutex with timed waiting, for std::lock_guard and std::unique_lock. Replaces std::timed_mutex, whose
// wait ThreadSanitizer (GCC 12) does not support and reports as an error. Any thread.
#pragma once

#include <chrono>
#include <semaphore>

namespace joulemap::capture::cupti {

class TimedMutex {
 public:
  void lock() { semaphore_.acquire(); }
  bool try_lock() { return semaphore_.try_acquire(); }
  template <class Rep, class Period>
  bool try_lock_for(std::chrono::duration<Rep, Period> limit) {
    return semaphore_.try_acquire_for(limit);
  }
  void unlock() { semaphore_.release(); }

 private:
  std::binary_semaphore semaphore_{1};
};

}  // namespace joulemap::capture::cupti
