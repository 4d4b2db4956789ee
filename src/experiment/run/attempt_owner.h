// SPDX-License-Identifier: Apache-2.0
//
// Who works at an attempt: a small file `owner` in its folder names the machine and the process, so that a runner that was
// killed can be told from one that still runs. Written once, by the runner.
#pragma once

#include <string>

#include "base/result.h"

namespace joulemap::experiment {

Status write_owner(const std::string& attempt_path);

// Whether the process that began the attempt is still at it. Of another machine, or of an earlier boot, nobody knows. An
// attempt without an owner is nobody's.
enum class OwnerState { gone, at_work, elsewhere };
OwnerState owner_state(const std::string& attempt_path);

// This machine's name.
std::string node_name();

}  // namespace joulemap::experiment
