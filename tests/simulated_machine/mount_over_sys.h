// SPDX-License-Identifier: Apache-2.0
//
// Mounts the simulated machine's powercap tree over /sys, for this process and its children only: for programs with a
// hard-coded path. Needs root (CAP_SYS_ADMIN).
#pragma once

#include <string>

#include "base/result.h"

namespace joulemap::simulated {

// Enters a private mount namespace in which /sys/class/powercap and /sys/devices/virtual/powercap are those of `root`.
// If the kernel lacks such a folder (sysfs allows no mkdir), its parent is rebuilt: a tmpfs with every entry of the
// original bind-mounted, plus ours. Nothing is visible outside, and the namespace ends with its last process.
Status mount_over_sys(const std::string& root);

}  // namespace joulemap::simulated
