// SPDX-License-Identifier: Apache-2.0
//
// The owner of an attempt: a small file `owner` in its folder names the machine and the process. It distinguishes a
// killed runner from one that still runs. The runner writes it once.
#pragma once

#include <string>

#include "base/result.h"

namespace joulemap::experiment {

Status write_owner(const std::string& attempt_path);

// Whether the process that began the attempt still runs. `unknown`: another machine or an earlier boot, so the state
// is unknown. An attempt without an owner file is `exited`.
enum class AttemptOwnerState { exited, running, unknown };
AttemptOwnerState read_attempt_owner_state(const std::string& attempt_path);

// Name of this machine; under Slurm the node name.
std::string current_node_name();

}  // namespace joulemap::experiment
