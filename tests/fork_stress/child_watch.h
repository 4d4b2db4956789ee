// SPDX-License-Identifier: Apache-2.0
//
// Waits for a child, and shows where one hangs. Any thread.
#pragma once

#include <sys/types.h>

// How long a child may take before it hangs. All of them take milliseconds on a quiet machine.
inline constexpr int kHangTimeout_s = 60;

// True when it has ended by itself with exit code 0, or, where `is_killed`, by SIGKILL. Else it says on standard error
// what happened, with the stacks of a child that hangs, which is then killed.
bool wait_for_success(pid_t child, const char* child_label, bool is_killed = false, int limit_s = kHangTimeout_s);
