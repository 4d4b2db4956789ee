// SPDX-License-Identifier: Apache-2.0
//
// UntrackedCpuTime: the CPU time of untracked threads, such as OpenMP workers and threads of libraries. It equals the
// CPU time of the process minus that of the tracked threads. Untracked threads work for the leading thread (the one
// that last entered a scope), so the caller credits their time to its scope. take_untracked_cpu_ns() can return too
// much when the clock of a tracked thread has not been read yet; later calls subtract the excess, so the sum is exact.
// Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace joulemap::capture {

class UntrackedCpuTime {
 public:
  explicit UntrackedCpuTime(std::int64_t process_cpu_ns) : process_cpu_at_start_ns_(process_cpu_ns) {}

  // Adds CPU time that a tracked thread, or the capture itself, used since its previous call.
  void add_tracked_cpu_time(std::int64_t cpu_ns) {
    const std::lock_guard lock(lock_);
    tracked_cpu_ns_ += cpu_ns;
  }

  // Returns the CPU time of untracked threads since the last call, at least 0. process_cpu_ns: CPU time of the process so
  // far.
  std::int64_t take_untracked_cpu_ns(std::int64_t process_cpu_ns) {
    const std::lock_guard lock(lock_);
    const std::int64_t unattributed_cpu_ns =
        process_cpu_ns - process_cpu_at_start_ns_ - tracked_cpu_ns_ - attributed_cpu_ns_;
    const std::int64_t untracked_cpu_ns = std::max(unattributed_cpu_ns, std::int64_t{0});
    attributed_cpu_ns_ += untracked_cpu_ns;
    return untracked_cpu_ns;
  }

 private:
  std::mutex lock_;
  const std::int64_t process_cpu_at_start_ns_;
  std::int64_t tracked_cpu_ns_ = 0;
  std::int64_t attributed_cpu_ns_ = 0;
};

}  // namespace joulemap::capture
