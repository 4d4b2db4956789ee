// SPDX-License-Identifier: Apache-2.0
//
// Energy counters and power gauges of /sys/class/hwmon: AMD GPUs, Intel GPUs, AMD sockets, power meters of boards.
// World-readable on most machines. A read of a GPU may take milliseconds, because its firmware answers it.
#pragma once

#include "sensors/sensor.h"

namespace joulemap::sensors {

ProbeResult probe_hwmon(const ProbeContext& context);

}  // namespace joulemap::sensors
