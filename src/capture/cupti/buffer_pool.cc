// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/buffer_pool.h"

#include <algorithm>
#include <utility>

namespace joulemap::capture::cupti {
namespace {

constexpr std::size_t kAlignment = 8;  // ACTIVITY_RECORD_ALIGNMENT

}  // namespace

// Reserves the lists at full length: functions that CUPTI calls must not throw.
BufferPool::BufferPool() {
  free_.reserve(kMostBuffers);
  given_out_.reserve(kMostBuffers);
}

std::uint8_t* BufferPool::take(const Loan& loan) {
  const std::lock_guard hold(lock_);
  if (given_out_.size() >= kMostBuffers) return nullptr;
  Buffer buffer;
  if (free_.empty()) {
    buffer.reset(static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kLargestBufferBytes)));
    if (buffer == nullptr) return nullptr;
  } else {
    buffer = std::move(free_.back());
    free_.pop_back();
  }
  given_out_.push_back({std::move(buffer), loan});
  return given_out_.back().buffer.get();
}

std::size_t BufferPool::find(const std::uint8_t* buffer) const {
  std::size_t slot = 0;
  while (slot < given_out_.size() && given_out_[slot].buffer.get() != buffer) ++slot;
  return slot;
}

std::optional<BufferPool::Loan> BufferPool::loan_of(const std::uint8_t* buffer) const {
  const std::lock_guard hold(lock_);
  const std::size_t slot = find(buffer);
  if (slot == given_out_.size()) return std::nullopt;
  return given_out_[slot].loan;
}

void BufferPool::give_back(const std::uint8_t* buffer) {
  const std::lock_guard hold(lock_);
  const std::size_t slot = find(buffer);
  if (slot == given_out_.size()) return;
  free_.push_back(std::move(given_out_[slot].buffer));
  given_out_.erase(given_out_.begin() + static_cast<std::ptrdiff_t>(slot));
}

void BufferPool::write_off() {
  const std::lock_guard hold(lock_);
  for (GivenOut& given : given_out_) given.is_waited_for = false;
}

BufferPool::Lent BufferPool::lent() const {
  const std::lock_guard hold(lock_);
  Lent lent;
  for (const GivenOut& given : given_out_) {
    if (!given.is_waited_for) continue;
    lent.bytes += given.loan.bytes;
    lent.oldest_ns = std::min(lent.oldest_ns.value_or(given.loan.since_ns), given.loan.since_ns);
  }
  return lent;
}

}  // namespace joulemap::capture::cupti
