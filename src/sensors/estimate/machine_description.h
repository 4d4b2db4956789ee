// SPDX-License-Identifier: Apache-2.0
//
// Finds out what the estimate's model needs to know: packages, hardware threads, power limits, memory.
#pragma once

#include "base/system_root.h"
#include "sensors/estimate/power_model.h"

namespace joulemap::sensors {

// What cannot be found out keeps its default: one package, `threads` as given, no limit, no memory.
MachineDescription describe_machine(const SystemRoot& root, int threads);

}  // namespace joulemap::sensors
