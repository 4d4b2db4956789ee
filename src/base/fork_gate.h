// SPDX-License-Identifier: Apache-2.0
//
// ForkGate: delays a fork while one of our threads is inside a library with locks of its own (NVML). A child would
// inherit those locks in the locked state and hang in its first call. The fork waits for the threads inside, for a
// bounded time; threads that arrive later wait for the fork. If the wait times out, is_lost() is true in the child,
// which must not call that library. Any thread; takes no locks and allocates nothing after construction.
//
//   const ForkGate::Visit inside(nvml_calls);  // around every call of the library
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/fork_generation.h"
#include "base/futex.h"

namespace joulemap {

class ForkGate {
 public:
  class Visit {
   public:
    explicit Visit(ForkGate& gate) noexcept : gate_(gate), generation_(fork_generation()) { gate_.enter(); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    ~Visit() {
      if (generation_ == fork_generation()) gate_.leave();
    }

   private:
    ForkGate& gate_;
    const std::uint32_t generation_;
  };

  // The three fork handlers. After a timeout, later forks skip the wait until the thread inside has left.
  void before_fork(std::int64_t limit_ns) noexcept {
    closed_.fetch_add(1);
    const std::int64_t deadline_ns = monotonic_ns() + (hangs_.load() ? 0 : limit_ns);
    std::uint32_t inside = inside_.load();
    while (inside != 0 && monotonic_ns() < deadline_ns) {
      wait_for_change(inside_, inside, deadline_ns);
      inside = inside_.load();
    }
    if (inside != 0) hangs_.store(true);
  }
  void after_fork_in_parent() noexcept {
    closed_.fetch_sub(1);
    wake_all(closed_);
  }
  void after_fork_in_child() noexcept {
    if (inside_.exchange(0) != 0) is_lost_.store(true);
    closed_.store(0);
    hangs_.store(false);
  }

  // A thread of an ancestor process was inside during a fork: the library's locks may be held for ever.
  bool is_lost() const noexcept { return is_lost_.load(); }

 private:
  void enter() noexcept {
    while (true) {
      inside_.fetch_add(1);
      const std::uint32_t closed = closed_.load();
      if (closed == 0) return;
      leave();
      wait_for_change(closed_, closed, monotonic_ns() + kNanosecondsPerSecond);
    }
  }
  void leave() noexcept {
    hangs_.store(false);
    inside_.fetch_sub(1);
    if (closed_.load() != 0) wake_all(inside_);
  }

  std::atomic<std::uint32_t> inside_{0};
  std::atomic<std::uint32_t> closed_{0};  // forks in progress
  std::atomic<bool> hangs_{false};
  std::atomic<bool> is_lost_{false};
};

inline constinit ForkGate nvml_calls;

}  // namespace joulemap
