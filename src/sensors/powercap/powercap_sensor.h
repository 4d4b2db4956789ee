// SPDX-License-Identifier: Apache-2.0
//
// RAPL through /sys/class/powercap: one counter in microjoules for each zone, files kept open. Intel since Sandy
// Bridge, AMD since Zen (the same driver, package and core only). Since Linux 5.10 root only (PLATYPUS).
#pragma once

#include "sensors/sensor.h"

namespace joulemap::sensors {

ProbeResult probe_powercap(const ProbeContext& context);

}  // namespace joulemap::sensors
