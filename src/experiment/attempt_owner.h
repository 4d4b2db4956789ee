// SPDX-License-Identifier: Apache-2.0
//
// Who works at an attempt: a small file `owner` in its folder names the machine and the process, so that a runner that was
// killed can be told from one that still runs. Written once, by the runner.
#pragma once

#include <string>

#include "base/result.h"

namespace joulemap::experiment {

Status write_owner(const std::string& attempt_path);

// Whether the process that began the attempt may still be at it: on this machine we know; of another one we do not, so it
// may. An attempt without an owner is nobody's.
bool owner_may_live(const std::string& attempt_path);

// This machine's name.
std::string node_name();

}  // namespace joulemap::experiment
