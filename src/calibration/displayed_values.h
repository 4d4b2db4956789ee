// SPDX-License-Identifier: Apache-2.0
//
// Converts readings of a channel to the values it showed and the time at which each of them appeared. Pure.
#pragma once

#include <span>
#include <vector>

#include "calibration/load_response.h"
#include "model/channel.h"
#include "model/reading.h"

namespace joulemap::calibration {

struct DisplayedValues {
  std::vector<DisplayedValue> values;  // counter: joules since the first reading; power history: every value
  double time_uncertainty_s = 0;       // common uncertainty of all times, as far as the reads show
};

// Readings in order of time.
DisplayedValues displayed_values(const Channel& channel, std::span<const Reading> readings);

}  // namespace joulemap::calibration
