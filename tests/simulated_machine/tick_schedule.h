// SPDX-License-Identifier: Apache-2.0
//
// TickSchedule: the tick times of the simulated machine, a regular grid with Gaussian jitter on each tick. A pure
// function of the tick's number, so threads agree on every time without communication.
#pragma once

#include <cstdint>

namespace joulemap::simulated {

struct TickSchedule {
  std::int64_t origin_ns = 0;
  std::int64_t period_ns = 1'000'000;
  std::int64_t jitter_ns = 50'000;  // standard deviation; at most a third of the period is applied
  std::uint64_t seed = 1;

  std::int64_t tick_time_ns(std::int64_t tick) const;

  // The first tick later than now_ns: where to continue after oversleeping.
  std::int64_t first_tick_after(std::int64_t now_ns) const;

  // Start of the energy use that the tick at now_ns covers; the previous tick was at last_ns. Usually this is last_ns.
  // If the simulator was not scheduled, its counters stayed constant for too long. To keep them correct, the machine
  // stands still, at 0 W, until two periods before the tick.
  std::int64_t running_since_ns(std::int64_t last_ns, std::int64_t now_ns) const;
};

}  // namespace joulemap::simulated
