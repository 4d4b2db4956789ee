// SPDX-License-Identifier: Apache-2.0
//
// TickSchedule: when the simulated machine ticks. A regular grid with a gaussian jitter on each tick, as a
// pure function of the tick's number, so that threads that never talk to each other agree on every instant.
#pragma once

#include <cstdint>

namespace joulemap::simulated {

struct TickSchedule {
  std::int64_t origin_ns = 0;
  std::int64_t period_ns = 1'000'000;
  std::int64_t jitter_ns = 50'000;  // standard deviation; a tick never strays more than a third of the period
  std::uint64_t seed = 1;

  std::int64_t instant_ns(std::int64_t tick) const;

  // The first tick whose instant is after now_ns: where to go on from after having slept too long.
  std::int64_t first_tick_after(std::int64_t now_ns) const;
};

}  // namespace joulemap::simulated
