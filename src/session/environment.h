// SPDX-License-Identifier: Apache-2.0
//
// The environment of a measurement: the first thing to check when two recordings differ.
#pragma once

#include <vector>

#include "base/system_root.h"
#include "model/recorded.h"

namespace joulemap::session {

// Kernel, CPU, number of CPUs, memory, governor, turbo, load; facts that this machine does not expose are omitted.
std::vector<EnvironmentFact> describe_environment(const SystemRoot& root);

}  // namespace joulemap::session
