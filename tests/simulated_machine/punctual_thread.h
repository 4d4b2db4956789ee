// SPDX-License-Identifier: Apache-2.0
//
// Helpers for threads that must wake on time on a busy machine, and what the kernel's own clock tick is.
#pragma once

#include <cstdint>
#include <vector>

namespace joulemap::simulated {

// No timer slack; and the lowest real-time priority where that is permitted, so that a machine full of busy
// processes does not hold the thread back for a time slice.
void make_this_thread_punctual();

void pin_this_thread(int cpu);

// The CPUs that this program may run on.
std::vector<int> usable_cpus();

// 4 ms on a kernel with HZ=250.
std::int64_t kernel_tick_ns();

}  // namespace joulemap::simulated
