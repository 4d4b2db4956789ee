// SPDX-License-Identifier: Apache-2.0
//
// ClockNudger: keeps the CPU clocks of running processes fresh. Linux brings the clock of a process that is
// running on another CPU up to date only when that CPU's scheduler looks at it: at the kernel's clock tick
// (every 4 ms with HZ=250) or when the process leaves the CPU. Read every millisecond, a busy process would
// seem to run 0, 0, 0, 4 ms. So one thread per CPU wakes for a moment just before each tick of the simulated
// machine; being switched to is all it does.
#pragma once

#include <thread>
#include <vector>

#include "tick_schedule.h"

namespace joulemap::simulated {

class ClockNudger {
 public:
  // Starts no thread where the kernel's own tick is as fast as the schedule.
  explicit ClockNudger(const TickSchedule& schedule);

 private:
  std::vector<std::jthread> threads_;  // stop and join by themselves
};

}  // namespace joulemap::simulated
