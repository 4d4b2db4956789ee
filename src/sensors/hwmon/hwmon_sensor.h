// SPDX-License-Identifier: Apache-2.0
//
// Energy counters and power gauges of /sys/class/hwmon: AMD GPUs, Intel GPUs, AMD sockets, power meters of boards.
// World-readable on most machines. A read may take the GPU's firmware milliseconds.
#pragma once

#include "sensors/sensor.h"

namespace joulemap::sensors {

ProbeResult probe_hwmon(const ProbeContext& context);

}  // namespace joulemap::sensors
