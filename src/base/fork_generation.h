// SPDX-License-Identifier: Apache-2.0
//
// What the libraries that live in other programs (libjoulemap.so, libjoulemap_capture.so) do when the program forks.
//
// - Each registers its fork handlers once, when it is loaded: no fork can come before them.
// - No handler takes a lock that guards our state. The child has one thread, and the threads that are gone may have held
//   any lock, in the middle of any change. So the child locks, reads through and destroys nothing that its parent made: it
//   drops the pointers (the memory stays allocated), closes the inherited descriptors, and starts with its first call.
// - What a thread caches carries the generation it was made in. State of another generation is dropped, not destroyed.
// - A fork waits for one thing: until none of our threads is inside NVML, whose locks the child inherits (fork_gate.h).
//
// Limits: vfork, posix_spawn and a bare clone run no handlers; their child may exec or _exit. A signal handler may fork, and
// its child may measure; it must not return into a call of ours that the signal interrupted.
#pragma once

#include <atomic>
#include <cstdint>

namespace joulemap {

inline constinit std::atomic<std::uint32_t> fork_generation_count{0};

// How many forks lie between the process that loaded the library and this one.
inline std::uint32_t fork_generation() noexcept { return fork_generation_count.load(std::memory_order_relaxed); }

// By the fork handler of the child.
inline void begin_fork_generation() noexcept { fork_generation_count.fetch_add(1, std::memory_order_relaxed); }

}  // namespace joulemap
