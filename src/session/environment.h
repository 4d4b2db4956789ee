// SPDX-License-Identifier: Apache-2.0
//
// The setting of a measurement: what a reader of a recording asks first when two of them differ.
#pragma once

#include <vector>

#include "base/system_root.h"
#include "model/recorded.h"

namespace joulemap::session {

// Kernel, CPU, number of CPUs, memory, governor, turbo, load; what this machine does not tell is left out.
std::vector<EnvironmentFact> describe_environment(const SystemRoot& root);

}  // namespace joulemap::session
