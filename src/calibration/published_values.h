// SPDX-License-Identifier: Apache-2.0
//
// Converts readings of a channel to the values that it showed and the time at which each value appeared. Pure.
#pragma once

#include <span>
#include <vector>

#include "calibration/load_response.h"
#include "model/channel.h"
#include "model/reading.h"

namespace joulemap::calibration {

struct PublishedValues {
  std::vector<PublishedValue> values;  // counter: joules since the first reading; power: watts
  double time_uncertainty_s = 0;       // common uncertainty of all times, as far as the reads show
};

// Readings must be in order of time. Returns each change of the value; of a power history every reading.
PublishedValues make_published_values(const Channel& channel, std::span<const Reading> readings);

}  // namespace joulemap::calibration
