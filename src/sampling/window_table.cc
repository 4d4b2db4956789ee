// SPDX-License-Identifier: Apache-2.0
#include "sampling/window_table.h"

#include <new>

#include "base/check.h"
#include "base/clock.h"

namespace joulemap::sampling {
namespace {

// WindowId: epoch (16 bits), generation (28), index (20).
constexpr int kSlotIndexBits = 20;
constexpr int kSlotGenerationBits = 28;
constexpr std::uint64_t kSlotIndexMask = (std::uint64_t{1} << kSlotIndexBits) - 1;
constexpr std::uint64_t kSlotGenerationMask = (std::uint64_t{1} << kSlotGenerationBits) - 1;
static_assert(WindowTable::kMaxWindows == kSlotIndexMask + 1);

}  // namespace

WindowTable::WindowTable(std::uint16_t epoch) : table_epoch_(epoch) { JOULEMAP_CHECK(epoch != 0, "epochs begin at 1"); }

WindowTable::~WindowTable() {
  for (std::atomic<SlotBlock*>& block : slot_blocks_) delete block.load();
}

WindowId WindowTable::make_window_id(std::uint32_t index, std::uint64_t word) const {
  return table_epoch_ << (kSlotGenerationBits + kSlotIndexBits) |
         ((word >> 8) & kSlotGenerationMask) << kSlotIndexBits | index;
}

WindowTable::Slot* WindowTable::find_live_slot(WindowId window, std::uint64_t* word) const noexcept {
  const auto index = static_cast<std::uint32_t>(window & kSlotIndexMask);
  if (index >= slot_count_.load(std::memory_order_acquire)) return nullptr;
  Slot& live_slot = slot(index);
  *word = live_slot.generation_and_state.load(std::memory_order_acquire);
  const SlotState state = decode_slot_state(*word);
  if (state == SlotState::free || state == SlotState::released || make_window_id(index, *word) != window)
    return nullptr;
  return &live_slot;
}

bool WindowTable::change_state(std::uint32_t index, std::uint64_t& word, SlotState new_state) noexcept {
  const std::uint64_t new_word = (word & ~std::uint64_t{0xff}) | static_cast<std::uint64_t>(new_state);
  return slot(index).generation_and_state.compare_exchange_strong(word, new_word, std::memory_order_acq_rel);
}

void WindowTable::recycle_slot(std::uint32_t index, std::uint64_t word) noexcept {
  const std::uint64_t generation = ((word >> 8) + 1) & kSlotGenerationMask;
  slot(index).generation_and_state.store(generation << 8 | static_cast<std::uint64_t>(SlotState::free),
                                         std::memory_order_release);
  push_free_slot(index);
}

std::uint32_t WindowTable::pop_free_slot() noexcept {
  std::uint64_t top = free_list_head_.load(std::memory_order_acquire);
  while (const auto free_slot = static_cast<std::uint32_t>(top)) {
    const std::uint64_t next_free_slot = slot(free_slot - 1).next_free_index.load(std::memory_order_relaxed);
    const std::uint64_t tag = (top >> 32) + 1;
    if (free_list_head_.compare_exchange_weak(top, tag << 32 | next_free_slot, std::memory_order_acq_rel))
      return free_slot;
  }
  return 0;
}

void WindowTable::push_free_slot(std::uint32_t index) noexcept {
  std::uint64_t top = free_list_head_.load(std::memory_order_relaxed);
  do {
    slot(index).next_free_index.store(static_cast<std::uint32_t>(top), std::memory_order_relaxed);
  } while (
      !free_list_head_.compare_exchange_weak(top, ((top >> 32) + 1) << 32 | (index + 1), std::memory_order_acq_rel));
}

bool WindowTable::add_block() noexcept {
  const std::lock_guard lock(add_block_lock_);
  if (static_cast<std::uint32_t>(free_list_head_.load()) != 0) return true;  // another thread was faster
  const std::uint32_t first_index = slot_count_.load();
  if (first_index == kMaxWindows) return false;
  auto* block = new (std::nothrow) SlotBlock;
  if (block == nullptr) return false;
  slot_blocks_[first_index / kSlotsPerBlock].store(block, std::memory_order_release);
  slot_count_.store(first_index + kSlotsPerBlock, std::memory_order_release);
  for (std::uint32_t index = first_index + kSlotsPerBlock; index-- > first_index;) push_free_slot(index);
  return true;
}

WindowId WindowTable::begin() noexcept {
  std::uint32_t free_slot = pop_free_slot();
  while (free_slot == 0) {
    if (!add_block()) return 0;
    free_slot = pop_free_slot();
  }
  const std::uint32_t index = free_slot - 1;
  Slot& begun = slot(index);
  const std::uint64_t word =
      begun.generation_and_state.load(std::memory_order_relaxed) | static_cast<std::uint64_t>(SlotState::begun);
  begun.end_ns.store(0, std::memory_order_relaxed);
  // The time is read last, directly before the measured program continues, so that the window contains as little of
  // joulemap's own work as possible.
  begun.begin_ns.store(monotonic_ns(), std::memory_order_relaxed);
  begun.generation_and_state.store(word, std::memory_order_release);
  return make_window_id(index, word);
}

bool WindowTable::end(WindowId window) noexcept {
  const std::int64_t now_ns = monotonic_ns();
  std::uint64_t word = 0;
  Slot* const live_slot = find_live_slot(window, &word);
  std::int64_t expected_end_ns = 0;
  return live_slot != nullptr &&
         live_slot->end_ns.compare_exchange_strong(expected_end_ns, now_ns, std::memory_order_acq_rel);
}

bool WindowTable::release(WindowId window) noexcept {
  std::uint64_t word = 0;
  while (find_live_slot(window, &word) != nullptr) {
    const auto index = static_cast<std::uint32_t>(window & kSlotIndexMask);
    if (decode_slot_state(word) != SlotState::begun) {
      if (change_state(index, word, SlotState::released)) return true;
    } else if (change_state(index, word, SlotState::free)) {
      recycle_slot(index, word);
      return true;
    }
  }
  return false;
}

bool WindowTable::is_alive(WindowId window) const noexcept {
  std::uint64_t word = 0;
  return find_live_slot(window, &word) != nullptr;
}

std::int64_t WindowTable::end_ns(WindowId window) const noexcept {
  std::uint64_t word = 0;
  const Slot* const live_slot = find_live_slot(window, &word);
  return live_slot == nullptr ? 0 : live_slot->end_ns.load(std::memory_order_acquire);
}

void WindowTable::mark_complete(WindowId window) noexcept {
  std::uint64_t word = 0;
  if (find_live_slot(window, &word) != nullptr)
    change_state(static_cast<std::uint32_t>(window & kSlotIndexMask), word, SlotState::complete);
}

}  // namespace joulemap::sampling
