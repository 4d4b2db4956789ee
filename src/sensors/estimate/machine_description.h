// SPDX-License-Identifier: Apache-2.0
//
// Detects the inputs of the estimate's model: packages, hardware threads, power limits, memory.
#pragma once

#include "base/system_root.h"
#include "sensors/estimate/power_model.h"

namespace joulemap::sensors {

// Undetected values keep their default: one package, `threads` as given, no limit, no memory.
MachineDescription describe_machine(const SystemRoot& root, int threads);

}  // namespace joulemap::sensors
