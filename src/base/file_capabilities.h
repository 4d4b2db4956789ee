// SPDX-License-Identifier: Apache-2.0
//
// Borrowed rights: capabilities that this process gets from its program file (setcap) and that its user lacks. The
// program uses them only to open sensors:
//
//   refuse_setuid();             // refuses to run as a setuid or setgid program
//   clear_effective_capabilities();     // first call in main: opens no user-supplied path with these capabilities
//   raise_permitted_capabilities();           // while opening sensors
//   drop_capabilities();       // before starting threads, loading third-party libraries, opening user files
//
// Capabilities are per thread: call these before starting a second thread. Without borrowed rights, the last three
// calls do nothing, so a command run by root keeps root's capabilities. Only the program calls them, never a library in
// another program.
#pragma once

#include <string>

#include "base/result.h"

namespace joulemap {

// The kernel marks such a process with AT_SECURE; the mark persists after the rights are given up. Returns false for
// root, even where a security module sets AT_SECURE.
bool has_file_capabilities();

// Fails if the effective user or group differs from the real one.
Status refuse_setuid(const std::string& program);

Status clear_effective_capabilities();  // clears the effective set, keeps the permitted set
Status raise_permitted_capabilities();  // sets the effective set to the permitted set
// Permanently clears the effective, permitted, inheritable and ambient sets. Keeps the bounding set: without it the
// kernel refuses to execute our own program file again, which commands that record themselves do.
Status drop_capabilities();

}  // namespace joulemap
