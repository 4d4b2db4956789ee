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

  // From where on the machine used energy, at a tick at now_ns whose predecessor was at last_ns: usually from last_ns on. A
  // simulator that did not get its turn has shown the same counters for too long; so that they are right all the same, the
  // machine stood still, at 0 W, until two periods before the tick.
  std::int64_t running_since_ns(std::int64_t last_ns, std::int64_t now_ns) const;
};

}  // namespace joulemap::simulated
