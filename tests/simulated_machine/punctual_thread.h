// SPDX-License-Identifier: Apache-2.0
//
// Helpers for threads that must wake up on time on a busy machine, and the period of the kernel's clock tick.
#pragma once

#include <cstdint>
#include <vector>

namespace joulemap::simulated {

// Sets no timer slack and, if permitted, the lowest real-time priority, so that busy processes do not delay the thread
// by a time slice.
void make_this_thread_punctual();

void pin_this_thread(int cpu);

// The CPUs that this program may run on.
std::vector<int> usable_cpus();

// 4 ms on a kernel with HZ=250.
std::int64_t kernel_tick_ns();

}  // namespace joulemap::simulated
