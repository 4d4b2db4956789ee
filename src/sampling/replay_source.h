// SPDX-License-Identifier: Apache-2.0
//
// The sensors of a recording: its samples, to be given again at the pace at which they were taken.
#pragma once

#include <string>

#include "base/result.h"
#include "sampling/open_sensors.h"

namespace joulemap::sampling {

// Holds all samples in memory: refuses a recording of more than a few hours.
Result<OpenSensors> open_replay(const std::string& path);

}  // namespace joulemap::sampling
