// SPDX-License-Identifier: Apache-2.0
//
// Detects whether this is bare metal, a virtual machine or a container. The answer explains why a sensor is missing and
// selects the remedy.
#pragma once

#include "base/system_root.h"
#include "model/sensor_status.h"

namespace joulemap::sensors {

HostTraits detect_host_traits(const SystemRoot& root);

}  // namespace joulemap::sensors
