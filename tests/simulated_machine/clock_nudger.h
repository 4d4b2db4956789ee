// SPDX-License-Identifier: Apache-2.0
//
// ClockNudger: keeps the CPU clocks of running processes up to date. Linux updates the clock of a process that runs on
// another CPU only when that CPU's scheduler runs: at the kernel's clock tick (every 4 ms with HZ=250) or when the
// process leaves the CPU. Read every millisecond, a busy process would seem to run 0, 0, 0, 4 ms. So one thread per CPU
// wakes up just before each tick of the simulated machine; the context switch alone updates the clock.
#pragma once

#include <thread>
#include <vector>

#include "tick_schedule.h"

namespace joulemap::simulated {

class ClockNudger {
 public:
  // Starts no threads if the kernel's own tick is as fast as the schedule.
  explicit ClockNudger(const TickSchedule& schedule);

 private:
  std::vector<std::jthread> threads_;  // stop and join in their destructors
};

}  // namespace joulemap::simulated
