// SPDX-License-Identifier: Apache-2.0
//
// Waits until a word changes or an absolute deadline passes. std::atomic::wait has no deadline, and a condition
// variable needs a lock.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

#include "base/clock.h"

namespace joulemap {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

// Returns when `word` differs from `expected_value`, on a wake-up, when CLOCK_MONOTONIC reaches deadline_ns, or spuriously:
// callers must check again.
inline void wait_for_word_change(const std::atomic<std::uint32_t>& word, std::uint32_t expected_value,
                                 std::int64_t deadline_ns) noexcept {
  if (deadline_ns <= 0) return;
  const timespec deadline = to_timespec(deadline_ns);
  ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected_value, &deadline, nullptr, FUTEX_BITSET_MATCH_ANY);
}

inline void wake_all_waiters(const std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace joulemap
