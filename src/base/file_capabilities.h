// SPDX-License-Identifier: Apache-2.0
//
// File capabilities: capabilities that this process gets from its program file (setcap) and that its user lacks. The
// joulemap command uses them only to open sensors:
//
//   check_not_setuid();             // refuses to run as a setuid or setgid program
//   clear_effective_capabilities();     // first call in main: opens no user-supplied path with these capabilities
//   raise_permitted_capabilities();           // while opening sensors
//   drop_capabilities();       // before starting threads, loading third-party libraries, opening user files
//
// Capabilities are per thread: call these functions before starting a second thread. Without file capabilities, the
// calls that clear, raise and drop do nothing, so a command run by root keeps root's capabilities. Only the joulemap
// command calls them, never joulemap's libraries inside another program.
#pragma once

#include <string>

#include "base/result.h"

namespace joulemap {

// Whether this process got capabilities from its program file. The kernel marks such a process with AT_SECURE, which
// stays set after the capabilities are dropped. False for root, even where a security module sets AT_SECURE.
bool has_file_capabilities();

// Fails if the effective user or group differs from the real one.
Status check_not_setuid(const std::string& program);

Status clear_effective_capabilities();  // clears the effective set, keeps the permitted set
Status raise_permitted_capabilities();  // sets the effective set to the permitted set
// Permanently clears the effective, permitted, inheritable and ambient sets. Keeps the bounding set: without it the
// kernel refuses to execute joulemap's program file again, as a measured command that itself calls joulemap does.
Status drop_capabilities();

}  // namespace joulemap
