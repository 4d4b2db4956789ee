// SPDX-License-Identifier: Apache-2.0
//
// WindowTable: when windows begin and end, written by the threads that are measured and read by the engine's one. begin(),
// end() and release() are lock-free, neither allocate (but for a new block of slots, now and then) nor call the kernel: they
// are what a program pays inside the code it measures. Everything else is the engine's.
//
// A slot goes   free -> fresh -> adopted -> complete -> free;   release() takes it out of any of them. A window that is
// released before the engine has looked is back in the free list at once, so a loop of short windows stays in the cache.
// Slots are never given back to the system: a late call on an old window finds its number changed, and nothing else.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace joulemap::sampling {

// Never 0. Of a table's epoch, a slot's generation, and the slot: no other window of this process has it.
using WindowId = std::uint64_t;

class WindowTable {
 public:
  static constexpr std::uint32_t kMostWindows = 1u << 20;  // that live at the same time

  // `epoch`: which table of this process it is (a fork's child begins another). Not 0.
  explicit WindowTable(std::uint16_t epoch);
  ~WindowTable();
  WindowTable(const WindowTable&) = delete;
  WindowTable& operator=(const WindowTable&) = delete;

  // Any thread. 0 when kMostWindows are alive.
  WindowId begin() noexcept;
  // False when it is not alive or has already ended.
  bool end(WindowId window) noexcept;
  // False when it is not alive.
  bool release(WindowId window) noexcept;
  bool is_alive(WindowId window) const noexcept;
  // 0 while it is open.
  std::int64_t end_ns(WindowId window) const noexcept;

  // The engine's thread, or whoever holds its lock.
  enum class State : std::uint8_t { free, fresh, adopted, complete, released };

  // Adopts what is fresh, recycles what was released, and calls begun(window, begin_ns) and gone(window).
  template <class Begun, class Gone>
  void sweep(Begun&& begun, Gone&& gone) {
    const std::uint32_t slots = slots_.load(std::memory_order_acquire);
    for (std::uint32_t index = 0; index < slots; ++index) {
      std::uint64_t word = slot(index).word.load(std::memory_order_acquire);
      if (state_of(word) == State::fresh) {
        const std::int64_t begin_ns = slot(index).begin_ns.load(std::memory_order_relaxed);
        if (change(index, word, State::adopted)) begun(id_of(index, word), begin_ns);
      } else if (state_of(word) == State::released) {
        gone(id_of(index, word));
        recycle(index, word);
      }
    }
  }
  // The engine has nothing more to find out about it.
  void complete(WindowId window) noexcept;

 private:
  // Half a cache line: the words of many slots are swept quickly, and neighbours seldom fight.
  struct alignas(32) Slot {
    std::atomic<std::uint64_t> word{0};  // generation << 8 | State
    std::atomic<std::int64_t> begin_ns{0};
    std::atomic<std::int64_t> end_ns{0};
    std::atomic<std::uint32_t> next_free{0};  // index + 1
  };
  static constexpr std::uint32_t kSlotsInABlock = 1024;
  using Block = std::array<Slot, kSlotsInABlock>;

  static State state_of(std::uint64_t word) { return static_cast<State>(word & 0xff); }
  Slot& slot(std::uint32_t index) const {
    return (*blocks_[index / kSlotsInABlock].load(std::memory_order_acquire))[index % kSlotsInABlock];
  }
  WindowId id_of(std::uint32_t index, std::uint64_t word) const;
  Slot* find(WindowId window, std::uint64_t* word) const noexcept;
  bool change(std::uint32_t index, std::uint64_t& word, State to) noexcept;
  void recycle(std::uint32_t index, std::uint64_t word) noexcept;
  std::uint32_t take_free() noexcept;  // index + 1, or 0
  void give_free(std::uint32_t index) noexcept;
  bool grow() noexcept;

  const std::uint64_t epoch_;
  alignas(64) std::atomic<std::uint64_t> free_{0};  // tag << 32 | index + 1: the tag tells an old top from a new one
  alignas(64) std::atomic<std::uint32_t> slots_{0};
  std::mutex growing_;
  std::array<std::atomic<Block*>, kMostWindows / kSlotsInABlock> blocks_{};
};

}  // namespace joulemap::sampling
