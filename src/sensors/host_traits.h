// SPDX-License-Identifier: Apache-2.0
//
// Detects bare metal, virtual machine or container. It determines why a sensor is missing and the remedy.
#pragma once

#include "base/system_root.h"
#include "model/sensor_status.h"

namespace joulemap::sensors {

HostTraits detect_host_traits(const SystemRoot& root);

}  // namespace joulemap::sensors
