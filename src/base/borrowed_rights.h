// SPDX-License-Identifier: Apache-2.0
//
// Borrowed rights: capabilities that this process has from its program file (setcap) and its user does not have. The
// program opens sensors with them and nothing else:
//
//   refuse_other_user();             // a setuid or setgid program
//   set_aside_borrowed_rights();     // first of all: no path of the user is opened with them
//   use_borrowed_rights();           // while sensors are opened
//   give_up_borrowed_rights();       // before threads, foreign libraries, files of the user
//
// Capabilities belong to a thread: call these before the first further thread starts. Without borrowed rights the last three
// do nothing, so a command of root keeps what root has. Only the program calls them, never a library in another program.
#pragma once

#include <string>

#include "base/result.h"

namespace joulemap {

// The kernel marks such a process (AT_SECURE); the mark stays after the rights were given up. Root has borrowed nothing,
// also where a security module marks its processes.
bool has_borrowed_rights();

// Fails for a process whose effective user or group is not its real one.
Status refuse_other_user(const std::string& program);

Status set_aside_borrowed_rights();  // effective: none; permitted stays
Status use_borrowed_rights();        // effective: all that is permitted
// Effective, permitted, inheritable and ambient: none, for good. The bounding set stays: without it the kernel refuses to
// execute our own program file again, which commands that record themselves do.
Status give_up_borrowed_rights();

}  // namespace joulemap
