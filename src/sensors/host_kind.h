// SPDX-License-Identifier: Apache-2.0
//
// Is this bare metal, a virtual machine, a container? It decides why a sensor is missing and what would help.
#pragma once

#include "base/system_root.h"
#include "model/sensor_status.h"

namespace joulemap::sensors {

HostKind find_host_kind(const SystemRoot& root);

}  // namespace joulemap::sensors
