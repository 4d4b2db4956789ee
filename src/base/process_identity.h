// SPDX-License-Identifier: Apache-2.0
//
// Identifies a process uniquely. Process IDs are reused; boot ID, PID, start time and PID namespace together are not.
#pragma once

#include <string>
#include <string_view>

namespace joulemap {

// Boot ID of this machine; "-" if /proc does not show it.
std::string boot_id();

// Start time of a process in clock ticks since boot, as text; empty if the process does not exist or is hidden.
std::string process_start_ticks_text(std::string_view pid);

// "boot pid start namespace" of this process.
std::string this_process_identity();

enum class OwnerProcessState { running, ended, not_local };
// State of the process that wrote `identity`. `not_local`: from another boot, machine or PID namespace, so its PID has
// no meaning here; also returned for malformed text.
OwnerProcessState owner_process_state(std::string_view identity);

}  // namespace joulemap
