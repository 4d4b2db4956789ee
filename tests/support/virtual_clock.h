// SPDX-License-Identifier: Apache-2.0
//
// VirtualClock: time that passes only by what the program under test does, however busy the machine is.
//
//   VirtualClock clock;                       // from here on this program's clocks are virtual
//   sleep_until(monotonic_ns() + 5'000'000);  // returns at once, 5 ms later
//   clock.advance(1'000'000);
//
// While one exists, CLOCK_MONOTONIC, CLOCK_REALTIME and the CPU clocks are virtual in the whole program and in the libraries
// that it opens: virtual_clock.cc defines clock_gettime(), clock_nanosleep(), pthread_create(), pause() and syscall() (for
// base/futex.h). A test program that does not use it has the C library's. A look at a clock takes kLookCost_ns, so that
// loops which spin until a moment end; computing takes no time.
//
// Each thread has a processor of its own: it continues when its time is the earliest of all, so the order of what they do is
// always the same. A thread begins at the time of its creator.
//
// They may wait for one another by base/futex.h, not by a lock that one of them holds while it looks at a clock. At most one
// VirtualClock exists at a time; the threads have ended before it does.
#pragma once

#include <cstdint>

namespace joulemap {

class VirtualClock {
 public:
  static constexpr std::int64_t kLookCost_ns = 500;

  VirtualClock();
  ~VirtualClock();
  VirtualClock(const VirtualClock&) = delete;
  VirtualClock& operator=(const VirtualClock&) = delete;

  void advance(std::int64_t duration_ns);
};

}  // namespace joulemap
