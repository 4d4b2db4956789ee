// SPDX-License-Identifier: Apache-2.0
#include "punctual_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <ctime>

#include "base/clock.h"

namespace joulemap::simulated {

void make_this_thread_punctual() {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  sched_param priority{};
  priority.sched_priority = 1;
  // Ordinary users lack the permission: then the thread is only less punctual.
  (void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
}

void pin_this_thread(int cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<std::size_t>(cpu), &cpus);
  (void)sched_setaffinity(0, sizeof cpus, &cpus);
}

std::vector<int> usable_cpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  std::vector<int> usable_cpu_list;
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return usable_cpu_list;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &cpus)) usable_cpu_list.push_back(cpu);
  }
  return usable_cpu_list;
}

std::int64_t kernel_tick_ns() {
  timespec tick{};
  clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
  return static_cast<std::int64_t>(tick.tv_sec) * kNanosecondsPerSecond + tick.tv_nsec;
}

}  // namespace joulemap::simulated
