// SPDX-License-Identifier: Apache-2.0
//
// Sleeping until a word changes or an absolute moment comes: what std::atomic::wait cannot (it knows no deadline) and a
// condition variable does only with a lock.
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

// Returns when `word` no longer holds `seen`, when it is woken, when the monotonic clock shows deadline_ns, or for no
// reason: callers look again.
inline void wait_for_change(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                            std::int64_t deadline_ns) noexcept {
  if (deadline_ns <= 0) return;
  const timespec deadline = to_timespec(deadline_ns);
  ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, seen, &deadline, nullptr, FUTEX_BITSET_MATCH_ANY);
}

inline void wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace joulemap
