// SPDX-License-Identifier: Apache-2.0
//
// Stands in for CPU and memory where nothing can be read: energy by the model of power_model.h from the busy time
// that /proc/stat counts. Always labelled as an estimate, with its formula and interval; never added to what was
// measured.
#pragma once

#include "sensors/sensor.h"

namespace joulemap::sensors {

Probe probe_estimate(const ProbeContext& context);

}  // namespace joulemap::sensors
