// SPDX-License-Identifier: Apache-2.0
//
// VirtualClock: time that advances only by what the program under test does, independent of the machine's load.
//
//   VirtualClock clock;                       // from here on this program's clocks are virtual
//   sleep_until(monotonic_ns() + 5'000'000);  // returns at once, 5 ms later
//   clock.advance(1'000'000);
//
// While one exists, CLOCK_MONOTONIC, CLOCK_REALTIME and the CPU clocks are virtual in the whole program and in the
// libraries that it opens. virtual_clock.cc defines clock_gettime(), clock_nanosleep(), pthread_create(), pause() and
// syscall() (for base/futex.h). Without a VirtualClock the functions of the C library run. Reading a clock takes
// kClockReadCost_ns, so that loops which spin until a deadline end; computing takes no time.
//
// Each thread has a virtual processor of its own: it continues when its time is the earliest of all, so the order of
// events is deterministic. A thread starts at the time of its creator.
//
// Threads may wait for one another through base/futex.h, but not through a lock whose holder reads a clock. At most one
// VirtualClock exists at a time; all threads must end before it does.
#pragma once

#include <cstdint>

namespace joulemap {

class VirtualClock {
 public:
  static constexpr std::int64_t kClockReadCost_ns = 500;

  VirtualClock();
  ~VirtualClock();
  VirtualClock(const VirtualClock&) = delete;
  VirtualClock& operator=(const VirtualClock&) = delete;

  void advance(std::int64_t duration_ns);
};

}  // namespace joulemap
