// SPDX-License-Identifier: Apache-2.0
//
// WindowTable: begin and end times of windows, written by the measured threads and read by the engine thread. begin(),
// end() and release() are lock-free and make no system calls, except that begin() occasionally locks and allocates a
// new block of slots. They are the only overhead inside the measured code; the engine does everything else.
//
// States of a slot:   free -> begun -> adopted -> complete -> released -> free;   release() is possible in any state
// but free. A window released before the engine has seen it returns to the free list at once, so a loop of short
// windows reuses slots that are in the cache. Slots are never deallocated: a late call on an old window finds a
// different generation and fails.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace joulemap::sampling {

// Identifies a window uniquely in this process: the epoch of the table, the generation of the slot, and the index of
// the slot. Never 0.
using WindowId = std::uint64_t;

class WindowTable {
 public:
  static constexpr std::uint32_t kMaxWindows = 1u << 20;  // number of windows alive at the same time

  // `epoch`: number of the table in this process (the child of a fork starts another). Not 0.
  explicit WindowTable(std::uint16_t epoch);
  ~WindowTable();
  WindowTable(const WindowTable&) = delete;
  WindowTable& operator=(const WindowTable&) = delete;

  // Any thread. Returns 0 when kMaxWindows windows are alive or memory is exhausted.
  WindowId begin() noexcept;
  // Returns false when the window is not alive or has already ended.
  bool end(WindowId window) noexcept;
  // Returns false when the window is not alive.
  bool release(WindowId window) noexcept;
  bool is_alive(WindowId window) const noexcept;
  // Returns 0 while the window is open, and for a window that is not alive.
  std::int64_t end_ns(WindowId window) const noexcept;

  // The following is for the engine: its thread, or the thread that holds its lock.
  enum class SlotState : std::uint8_t { free, begun, adopted, complete, released };

  // Adopts begun windows and calls on_begun(window, begin_ns); calls on_released(window) for released ones and frees
  // their slots.
  template <class OnBegun, class OnReleased>
  void adopt_and_free_slots(OnBegun&& on_begun, OnReleased&& on_released) {
    const std::uint32_t slots = slot_count_.load(std::memory_order_acquire);
    for (std::uint32_t index = 0; index < slots; ++index) {
      std::uint64_t word = slot(index).generation_and_state.load(std::memory_order_acquire);
      if (decode_slot_state(word) == SlotState::begun) {
        const std::int64_t begin_ns = slot(index).begin_ns.load(std::memory_order_relaxed);
        if (change_state(index, word, SlotState::adopted)) on_begun(make_window_id(index, word), begin_ns);
      } else if (decode_slot_state(word) == SlotState::released) {
        on_released(make_window_id(index, word));
        recycle_slot(index, word);
      }
    }
  }
  // Marks a window whose edges are all known to the engine.
  void mark_complete(WindowId window) noexcept;

 private:
  // Half a cache line: sweeping the words of many slots is fast, and neighbours rarely share a line.
  struct alignas(32) Slot {
    std::atomic<std::uint64_t> generation_and_state{0};  // generation << 8 | State
    std::atomic<std::int64_t> begin_ns{0};
    std::atomic<std::int64_t> end_ns{0};
    std::atomic<std::uint32_t> next_free_index{0};  // index of the next free slot + 1; 0: none
  };
  static constexpr std::uint32_t kSlotsPerBlock = 1024;
  using SlotBlock = std::array<Slot, kSlotsPerBlock>;

  static SlotState decode_slot_state(std::uint64_t word) { return static_cast<SlotState>(word & 0xff); }
  Slot& slot(std::uint32_t index) const {
    return (*slot_blocks_[index / kSlotsPerBlock].load(std::memory_order_acquire))[index % kSlotsPerBlock];
  }
  WindowId make_window_id(std::uint32_t index, std::uint64_t word) const;
  Slot* find_live_slot(WindowId window, std::uint64_t* word) const noexcept;
  bool change_state(std::uint32_t index, std::uint64_t& word, SlotState new_state) noexcept;
  void recycle_slot(std::uint32_t index, std::uint64_t word) noexcept;
  std::uint32_t pop_free_slot() noexcept;  // index + 1, or 0 if no slot is free
  void push_free_slot(std::uint32_t index) noexcept;
  bool add_block() noexcept;

  const std::uint64_t table_epoch_;
  alignas(64) std::atomic<std::uint64_t> free_list_head_{0};  // tag << 32 | index + 1: the tag prevents the ABA problem
  alignas(64) std::atomic<std::uint32_t> slot_count_{0};
  std::mutex add_block_lock_;
  std::array<std::atomic<SlotBlock*>, kMaxWindows / kSlotsPerBlock> slot_blocks_{};
};

}  // namespace joulemap::sampling
