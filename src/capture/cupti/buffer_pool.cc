// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/buffer_pool.h"

namespace joulemap::capture::cupti {

namespace {
constexpr std::size_t kAlignment = 8;  // ACTIVITY_RECORD_ALIGNMENT
}

std::uint8_t* BufferPool::take() {
  const std::lock_guard hold(lock_);
  if (given_out_.size() >= kMostBuffers) return nullptr;
  if (free_.empty()) {
    Buffer fresh(static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes)));
    if (fresh == nullptr) return nullptr;
    free_.push_back(std::move(fresh));
  }
  Buffer buffer = std::move(free_.back());
  free_.pop_back();
  std::uint8_t* address = buffer.get();
  given_out_.emplace(address, std::move(buffer));
  return address;
}

bool BufferPool::owns(const std::uint8_t* buffer) const {
  const std::lock_guard hold(lock_);
  return given_out_.count(buffer) != 0;
}

bool BufferPool::give_back(std::uint8_t* buffer) {
  const std::lock_guard hold(lock_);
  const auto found = given_out_.find(buffer);
  if (found == given_out_.end()) return false;
  free_.push_back(std::move(found->second));
  given_out_.erase(found);
  return true;
}

std::size_t BufferPool::given_out() const {
  const std::lock_guard hold(lock_);
  return given_out_.size();
}

}  // namespace joulemap::capture::cupti
