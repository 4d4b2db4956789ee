// SPDX-License-Identifier: Apache-2.0
//
// A sensor that replays the samples of a recording at their original rate (--replay).
#pragma once

#include <string>

#include "base/result.h"
#include "sampling/open_sensors.h"

namespace joulemap::sampling {

// Holds all samples in memory: rejects recordings of more than a few hours.
Result<OpenSensors> open_replay_sensors(const std::string& path);

}  // namespace joulemap::sampling
