// SPDX-License-Identifier: Apache-2.0
//
// From readings of a channel to the values it showed and the moments at which each of them appeared. Pure.
#pragma once

#include <span>
#include <vector>

#include "calibration/load_response.h"
#include "model/channel.h"
#include "model/reading.h"

namespace joulemap::calibration {

struct ShownValues {
  std::vector<ShownValue> values;  // of a counter joules since the first; of what a device kept by itself every value
  double known_to_s = 0;           // all moments may be off by so much together, as far as the reads tell
};

// Readings in order of time.
ShownValues shown_values(const Channel& channel, std::span<const Reading> readings);

}  // namespace joulemap::calibration
