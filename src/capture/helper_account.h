// SPDX-License-Identifier: Apache-2.0
//
// HelperAccount: the CPU time of threads that nobody follows: OpenMP's workers, those of libraries. It is what the process
// used less what the followed threads used. Threads work for whoever is at work, so it is credited to the place of the
// leading thread, piece by piece. What was credited too early (a followed thread had not been read yet) is made up for
// later: in sum it is exact. Any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace joulemap::capture {

class HelperAccount {
 public:
  explicit HelperAccount(std::int64_t process_ns) : start_ns_(process_ns) {}

  // CPU time that a followed thread, or the capture itself, has used since it was last told.
  void add_followed(std::int64_t cpu_ns) {
    const std::lock_guard lock(lock_);
    followed_ns_ += cpu_ns;
  }

  // What is to be credited now, of all the process has used.
  std::int64_t draw(std::int64_t process_ns) {
    const std::lock_guard lock(lock_);
    const std::int64_t due_ns = process_ns - start_ns_ - followed_ns_ - credited_ns_;
    const std::int64_t credit_ns = std::max(due_ns, std::int64_t{0});
    credited_ns_ += credit_ns;
    return credit_ns;
  }

 private:
  std::mutex lock_;
  const std::int64_t start_ns_;
  std::int64_t followed_ns_ = 0;
  std::int64_t credited_ns_ = 0;
};

}  // namespace joulemap::capture
