// SPDX-License-Identifier: Apache-2.0
//
// Fork handling of the libraries that live in other programs (libjoulemap.so, libjoulemap_capture.so).
//
// - Each library registers its fork handlers once, at load time, before any fork can happen.
// - No handler takes a lock that guards our state. The child has one thread; the vanished threads may have held any
//   lock during any update. So the child never locks, dereferences or destroys state of its parent: it drops the
//   pointers (the memory stays allocated), closes the inherited descriptors, and builds new state at its first call.
// - Thread-local state carries the generation in which it was created. State of another generation is leaked, not
//   destroyed.
// - A fork waits only until none of our threads is inside NVML, whose locks the child inherits (fork_gate.h).
//
// Limits: vfork, posix_spawn and a bare clone run no handlers; their child may exec or _exit. A signal handler may
// fork, and its child may measure; the child must not return into a call of ours that the signal interrupted.
#pragma once

#include <atomic>
#include <cstdint>

namespace joulemap {

inline constinit std::atomic<std::uint32_t> fork_generation_count{0};

// Number of forks between the process that loaded the library and this one.
inline std::uint32_t fork_generation() noexcept { return fork_generation_count.load(std::memory_order_relaxed); }

// Called by the child's fork handler.
inline void increment_fork_generation() noexcept { fork_generation_count.fetch_add(1, std::memory_order_relaxed); }

}  // namespace joulemap
