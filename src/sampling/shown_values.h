// SPDX-License-Identifier: Apache-2.0
//
// From readings of a channel to the values it showed and the moments at which each of them appeared. Pure.
#pragma once

#include <span>
#include <vector>

#include "model/channel.h"
#include "model/reading.h"
#include "sampling/load_response.h"

namespace joulemap::sampling {

// Readings in order of time. Of a counter joules since the first; of what a device kept by itself every value.
std::vector<ShownValue> shown_values(const Channel& channel, std::span<const Reading> readings);

}  // namespace joulemap::sampling
