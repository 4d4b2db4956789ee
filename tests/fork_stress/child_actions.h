// SPDX-License-Identifier: Apache-2.0
//
// The ways in which a process is forked, and what its child does.
#pragma once

#include <cstdint>

enum class ChildAction : std::uint8_t {
  calls_exit,             // with exit(): handlers and destructors of the parent's thread run
  calls_underscore_exit,  // with _exit()
  measures,               // a window and a region of its own, then exit()
  calls_start_and_stop,   // jm_start and jm_stop, too, and waits for the energy
  calls_exec,
  is_killed,            // while it measures
  forks_again,          // its child measures
  exits_only_thread,    // the only one, which has state of the parent's
  measures_on_threads,  // that measure
  is_cloned,            // without fork handlers
  is_spawned,           // by vfork and posix_spawn
  forks_in_handler,     // of a signal
};
inline constexpr int kActionCount = 12;

const char* name_of(ChildAction action);

// Opens and closes a window and a region, as a measured program does. False when the library refused.
bool measure_once();

// Forks a child that does that, and waits for it. `ends_thread` is set in a child that has to return from its thread.
// False when a child hung or failed.
bool fork_child(ChildAction action, bool& ends_thread);

// The handler of SIGUSR1: forks a child that measures and ends.
void handle_fork_signal();
