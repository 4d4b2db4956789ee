// SPDX-License-Identifier: Apache-2.0
#include "slow_allocations.h"

#include <sched.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <new>

namespace {

constexpr std::uint64_t kAllocationsPerYield = 16;
constexpr std::uint64_t kAllocationsPerPause = 64;
constexpr long kPause_ns = 100'000;

thread_local constinit bool are_delays_disabled = false;
thread_local constinit std::uint64_t state = 0;

void yield_or_pause() noexcept {
  if (are_delays_disabled) return;
  if (state == 0) state = reinterpret_cast<std::uintptr_t>(&state) | 1;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  if (state % kAllocationsPerPause == 0) {
    const timespec pause{0, kPause_ns};
    ::nanosleep(&pause, nullptr);
  } else if (state % kAllocationsPerYield == 0) {
    ::sched_yield();
  }
}

}  // namespace

void disable_allocation_delays() { are_delays_disabled = true; }

void* operator new(std::size_t size) {
  yield_or_pause();
  void* const memory = std::malloc(size != 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
