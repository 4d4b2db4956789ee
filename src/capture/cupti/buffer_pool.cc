// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/buffer_pool.h"

#include <algorithm>

namespace joulemap::capture::cupti {
namespace {

constexpr std::size_t kAlignment = 8;  // ACTIVITY_RECORD_ALIGNMENT

}  // namespace

// What CUPTI calls must not throw, so the lists are as long as they will ever be from the start.
BufferPool::BufferPool() {
  free_.reserve(kMostBuffers);
  given_out_.reserve(kMostBuffers);
}

std::uint8_t* BufferPool::take() {
  const std::lock_guard hold(lock_);
  if (given_out_.size() >= kMostBuffers) return nullptr;
  Buffer buffer;
  if (free_.empty()) {
    buffer.reset(static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes)));
    if (buffer == nullptr) return nullptr;
  } else {
    buffer = std::move(free_.back());
    free_.pop_back();
  }
  given_out_.push_back(std::move(buffer));
  return given_out_.back().get();
}

std::vector<BufferPool::Buffer>::const_iterator BufferPool::find(const std::uint8_t* buffer) const {
  return std::find_if(given_out_.begin(), given_out_.end(), [&](const Buffer& given) { return given.get() == buffer; });
}

bool BufferPool::owns(const std::uint8_t* buffer) const {
  const std::lock_guard hold(lock_);
  return find(buffer) != given_out_.end();
}

void BufferPool::give_back(const std::uint8_t* buffer) {
  const std::lock_guard hold(lock_);
  const auto found = given_out_.begin() + (find(buffer) - given_out_.cbegin());
  if (found == given_out_.end()) return;
  free_.push_back(std::move(*found));
  given_out_.erase(found);
}

std::size_t BufferPool::given_out() const {
  const std::lock_guard hold(lock_);
  return given_out_.size();
}

}  // namespace joulemap::capture::cupti
