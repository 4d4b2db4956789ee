// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/buffer_pool.h"

#include <algorithm>
#include <utility>

namespace joulemap::capture::cupti {
namespace {

constexpr std::size_t kBufferAlignment = 8;  // ACTIVITY_RECORD_ALIGNMENT

}  // namespace

// Reserves the lists at full length: functions that CUPTI calls must not throw.
BufferPool::BufferPool() {
  free_buffers_.reserve(kMaxBuffers);
  lent_buffers_.reserve(kMaxBuffers);
}

std::uint8_t* BufferPool::lend_buffer(const BufferLoan& loan) {
  const std::lock_guard hold(lock_);
  if (lent_buffers_.size() >= kMaxBuffers) return nullptr;
  Buffer buffer;
  if (free_buffers_.empty()) {
    buffer.reset(static_cast<std::uint8_t*>(std::aligned_alloc(kBufferAlignment, kMaxBufferBytes)));
    if (buffer == nullptr) return nullptr;
  } else {
    buffer = std::move(free_buffers_.back());
    free_buffers_.pop_back();
  }
  lent_buffers_.push_back({std::move(buffer), loan});
  return lent_buffers_.back().buffer.get();
}

std::size_t BufferPool::find_lent_buffer(const std::uint8_t* buffer) const {
  std::size_t slot = 0;
  while (slot < lent_buffers_.size() && lent_buffers_[slot].buffer.get() != buffer) ++slot;
  return slot;
}

std::optional<BufferPool::BufferLoan> BufferPool::find_loan(const std::uint8_t* buffer) const {
  const std::lock_guard hold(lock_);
  const std::size_t slot = find_lent_buffer(buffer);
  if (slot == lent_buffers_.size()) return std::nullopt;
  return lent_buffers_[slot].loan;
}

void BufferPool::return_buffer(const std::uint8_t* buffer) {
  const std::lock_guard hold(lock_);
  const std::size_t slot = find_lent_buffer(buffer);
  if (slot == lent_buffers_.size()) return;
  free_buffers_.push_back(std::move(lent_buffers_[slot].buffer));
  lent_buffers_.erase(lent_buffers_.begin() + static_cast<std::ptrdiff_t>(slot));
}

void BufferPool::abandon_lent_buffers() {
  const std::lock_guard hold(lock_);
  for (LentBuffer& entry : lent_buffers_) entry.is_awaited = false;
}

BufferPool::LentBufferTotals BufferPool::lent_buffers() const {
  const std::lock_guard hold(lock_);
  LentBufferTotals lent_buffers;
  for (const LentBuffer& entry : lent_buffers_) {
    if (!entry.is_awaited) continue;
    lent_buffers.bytes += entry.loan.bytes;
    lent_buffers.oldest_ns =
        std::min(lent_buffers.oldest_ns.value_or(entry.loan.lent_since_ns), entry.loan.lent_since_ns);
  }
  return lent_buffers;
}

}  // namespace joulemap::capture::cupti
