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
  void lock() { free_.acquire(); }
  bool try_lock() { return free_.try_acquire(); }
  template <class Rep, class Period>
  bool try_lock_for(std::chrono::duration<Rep, Period> limit) {
    return free_.try_acquire_for(limit);
  }
  void unlock() { free_.release(); }

 private:
  std::binary_semaphore free_{1};
};

}  // namespace joulemap::capture::cupti
