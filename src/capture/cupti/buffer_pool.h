// SPDX-License-Identifier: Apache-2.0
//
// BufferPool: memory that CUPTI fills with records and hands back. Buffers are small on purpose: CUPTI keeps one until it
// is full and all of its kernels have ended, and what it keeps nobody has seen yet. A quarter of a megabyte holds 1200
// kernels. Any thread; takes a lock for some nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace joulemap::capture::cupti {

inline constexpr std::size_t kBufferBytes = 256UL * 1024;
inline constexpr std::size_t kMostBuffers = 256;         // 64 MB: then records are dropped, and CUPTI counts them
inline constexpr std::size_t kSmallestRecordBytes = 72;  // a fill's, CUDA 11.0
inline constexpr std::size_t kMostRecordsInBuffer = kBufferBytes / kSmallestRecordBytes;

class BufferPool {
 public:
  BufferPool();

  // Aligned to 8 bytes, of kBufferBytes. Null when there are too many already, or no memory is left.
  std::uint8_t* take();
  // Whether it is one of ours, and given out.
  bool owns(const std::uint8_t* buffer) const;
  void give_back(const std::uint8_t* buffer);
  std::size_t given_out() const;

 private:
  struct Free {
    void operator()(std::uint8_t* memory) const { std::free(memory); }
  };
  using Buffer = std::unique_ptr<std::uint8_t, Free>;

  std::vector<Buffer>::const_iterator find(const std::uint8_t* buffer) const;

  mutable std::mutex lock_;
  std::vector<Buffer> free_;
  std::vector<Buffer> given_out_;  // a few, as a rule
};

}  // namespace joulemap::capture::cupti
