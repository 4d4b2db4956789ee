// SPDX-License-Identifier: Apache-2.0
//
// How often a sensor is read, unless it knows better: seldom enough to cost nothing, often enough that nothing is lost.
// Pure.
#pragma once

#include <cstdint>
#include <span>

#include "model/channel.h"

namespace joulemap::sensors {

// Between edges. A counter misses nothing between two reads: they are for its wraps and faults. A gauge tells only of
// the moment; an estimate follows from two readings, however far apart.
std::int64_t relaxed_period_ns(std::span<const Channel> channels);

// More seldom than this a counter could wrap twice unseen.
std::int64_t longest_period_ns(std::span<const Channel> channels);

// Near an edge: a fraction of the refresh, so that a step is seen when it happens.
std::int64_t close_period_ns(std::span<const Channel> channels);

}  // namespace joulemap::sensors
