// SPDX-License-Identifier: Apache-2.0
//
// The sensors of a recording: replays its samples at their original rate.
#pragma once

#include <string>

#include "base/result.h"
#include "sampling/open_sensors.h"

namespace joulemap::sampling {

// Holds all samples in memory: rejects recordings of more than a few hours.
Result<OpenSensors> open_replay(const std::string& path);

}  // namespace joulemap::sampling
