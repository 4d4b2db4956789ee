// SPDX-License-Identifier: Apache-2.0
//
// ForkGate: delays a fork while one of our threads is inside a library with locks of its own (NVML). A child would
// inherit those locks in the locked state and hang in its first call. The fork waits for the threads inside, for a
// bounded time; threads that arrive later wait for the fork. If the wait times out, may_hold_inherited_locks() is true
// in the child, which must not call that library. Any thread; takes no locks and allocates nothing after construction.
//
//   const ForkGate::ScopedGateEntry inside(nvml_fork_gate);  // around every call of the library
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/fork_generation.h"
#include "base/futex.h"

namespace joulemap {

class ForkGate {
 public:
  class ScopedGateEntry {
   public:
    explicit ScopedGateEntry(ForkGate& gate) noexcept : gate_(gate), generation_(fork_generation()) { gate_.enter(); }
    ScopedGateEntry(const ScopedGateEntry&) = delete;
    ScopedGateEntry& operator=(const ScopedGateEntry&) = delete;
    ~ScopedGateEntry() {
      if (generation_ == fork_generation()) gate_.leave();
    }

   private:
    ForkGate& gate_;
    const std::uint32_t generation_;
  };

  // The three fork handlers. After a timeout, later forks skip the wait until no thread is inside.
  void before_fork(std::int64_t max_wait_ns) noexcept {
    forks_in_progress_.fetch_add(1);
    const std::int64_t deadline_ns = monotonic_ns() + (has_timed_out_.load() ? 0 : max_wait_ns);
    std::uint32_t thread_count = threads_inside_.load();
    while (thread_count != 0 && monotonic_ns() < deadline_ns) {
      wait_for_word_change(threads_inside_, thread_count, deadline_ns);
      thread_count = threads_inside_.load();
    }
    if (thread_count != 0) has_timed_out_.store(true);
  }
  void after_fork_in_parent() noexcept {
    forks_in_progress_.fetch_sub(1);
    wake_all_waiters(forks_in_progress_);
  }
  void after_fork_in_child() noexcept {
    if (threads_inside_.exchange(0) != 0) may_hold_inherited_locks_.store(true);
    forks_in_progress_.store(0);
    has_timed_out_.store(false);
  }

  // Whether a thread of an ancestor process was inside the library during a fork: its locks may never be released.
  bool may_hold_inherited_locks() const noexcept { return may_hold_inherited_locks_.load(); }

 private:
  void enter() noexcept {
    while (true) {
      threads_inside_.fetch_add(1);
      const std::uint32_t fork_count = forks_in_progress_.load();
      if (fork_count == 0) return;
      leave();
      wait_for_word_change(forks_in_progress_, fork_count, monotonic_ns() + kNanosecondsPerSecond);
    }
  }
  void leave() noexcept {
    if (threads_inside_.fetch_sub(1) == 1) has_timed_out_.store(false);
    if (forks_in_progress_.load() != 0) wake_all_waiters(threads_inside_);
  }

  std::atomic<std::uint32_t> threads_inside_{0};
  std::atomic<std::uint32_t> forks_in_progress_{0};
  std::atomic<bool> has_timed_out_{false};
  std::atomic<bool> may_hold_inherited_locks_{false};
};

inline constinit ForkGate nvml_fork_gate;

}  // namespace joulemap
