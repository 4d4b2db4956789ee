// SPDX-License-Identifier: Apache-2.0
//
// Estimate for CPU and memory where no sensor is readable: energy by the model of power_model.h from the busy time in
// /proc/stat. Always labelled as an estimate, with its formula and interval; never added to measured energy.
#pragma once

#include "sensors/sensor.h"

namespace joulemap::sensors {

ProbeResult probe_estimate(const ProbeContext& context);

}  // namespace joulemap::sensors
