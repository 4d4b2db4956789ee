// SPDX-License-Identifier: Apache-2.0
//
// Default read periods of sensors: long enough for a negligible cost, short enough to lose nothing. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "model/channel.h"

namespace joulemap::sensors {

// Between window edges. A counter misses nothing between two reads: reads only detect its wraps and faults. A gauge
// shows only the current value; an estimate needs two readings, however far apart.
std::int64_t relaxed_period_ns(std::span<const Channel> channels);

// With a longer period a counter could wrap twice unnoticed.
std::int64_t max_wrap_safe_period_ns(std::span<const Channel> channels);

// Near a window edge: a fraction of the update period, so that an update is seen when it happens.
std::int64_t near_edge_period_ns(std::span<const Channel> channels);

}  // namespace joulemap::sensors
