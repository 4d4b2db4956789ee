// SPDX-License-Identifier: Apache-2.0
#include "clock_nudger.h"

#include <algorithm>
#include <stop_token>

#include "base/clock.h"
#include "punctual_thread.h"

namespace joulemap::simulated {
namespace {

// Time for a wake-up and a context switch, so that the clock is current when the tick reads it.
constexpr std::int64_t kWakeUpLead_ns = 40 * kNanosecondsPerMicrosecond;

void wake_cpu_before_ticks(const std::stop_token& stop, const TickSchedule& schedule, int cpu) {
  pin_this_thread(cpu);
  make_this_thread_punctual();
  std::int64_t tick = 0;
  while (!stop.stop_requested()) {
    tick = std::max(tick + 1, schedule.first_tick_after(monotonic_ns() + kWakeUpLead_ns));
    sleep_until(schedule.tick_time_ns(tick) - kWakeUpLead_ns);
  }
}

}  // namespace

ClockNudger::ClockNudger(const TickSchedule& schedule) {
  if (kernel_tick_ns() <= schedule.period_ns) return;
  for (const int cpu : usable_cpus()) {
    threads_.emplace_back([schedule, cpu](const std::stop_token& stop) { wake_cpu_before_ticks(stop, schedule, cpu); });
  }
}

}  // namespace joulemap::simulated
