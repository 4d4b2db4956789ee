// SPDX-License-Identifier: Apache-2.0
//
// Default read periods of sensors: long enough for a negligible cost, short enough to lose nothing. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "model/channel.h"

namespace joulemap::sensors {

// Read period between window edges. A counter misses nothing between two reads: reads only detect its wraps and faults.
// A gauge shows only the current value, so it is read more often. An estimate needs two readings, however far apart.
std::int64_t relaxed_read_period_ns(std::span<const Channel> channels);

// Longest read period at which no counter can wrap unnoticed.
std::int64_t max_wrap_safe_read_period_ns(std::span<const Channel> channels);

// Read period near a window edge: a fraction of the update period, so that the time of an update is known closely.
std::int64_t near_edge_read_period_ns(std::span<const Channel> channels);

}  // namespace joulemap::sensors
