// SPDX-License-Identifier: Apache-2.0
//
// Shows the simulated machine's powercap tree at its real place, /sys, to this process and its children only:
// for programs that have the path built in. Needs root (CAP_SYS_ADMIN).
#pragma once

#include <string>

#include "base/result.h"

namespace joulemap::simulated {

// Enters a private mount namespace in which /sys/class/powercap and /sys/devices/virtual/powercap are the
// root's. Where the kernel has no such folder (sysfs takes no mkdir), its parent is rebuilt: a tmpfs with
// every entry of the original bound into it, and ours besides. Nothing is visible outside, and all of it ends
// with the last process inside.
Status mount_over_sys(const std::string& root);

}  // namespace joulemap::simulated
