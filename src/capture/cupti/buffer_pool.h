// SPDX-License-Identifier: Apache-2.0
//
// BufferPool: buffers that CUPTI fills with records and returns. CUPTI holds a buffer until it is full or flushed and
// none of its kernels is still running. On a GPU that is never idle, that means until it is full. Records are
// unreadable until then, so the pool sizes buffers to fill in about a quarter of a second.
//
// Thread-safe; takes a lock for some nanoseconds. Times are CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace joulemap::capture::cupti {

inline constexpr std::size_t kMaxBufferBytes = 256UL * 1024;  // 1200 kernels
inline constexpr std::size_t kMinBufferBytes = 32UL * 1024;   // 150 kernels
inline constexpr std::size_t kMaxBuffers = 256;               // 64 MB; beyond it CUPTI drops and counts records
inline constexpr std::size_t kMinRecordBytes = 72;            // the record of a memset in CUDA 11.0

// Chooses the size of the next buffer from the time that the last ones took to fill.
class BufferSizePolicy {
 public:
  std::size_t next_buffer_bytes() const { return next_buffer_bytes_.load(std::memory_order_relaxed); }
  void adapt_to_fill_time(std::int64_t fill_time_ns) {
    const std::size_t bytes = next_buffer_bytes();
    if (fill_time_ns < kFastFillTime_ns && bytes < kMaxBufferBytes) next_buffer_bytes_.store(bytes * 2);
    if (fill_time_ns > kSlowFillTime_ns && bytes > kMinBufferBytes) next_buffer_bytes_.store(bytes / 2);
  }

 private:
  static constexpr std::int64_t kFastFillTime_ns = kNanosecondsPerSecond / 8;
  static constexpr std::int64_t kSlowFillTime_ns = kNanosecondsPerSecond / 2;
  std::atomic<std::size_t> next_buffer_bytes_{2 * kMinBufferBytes};
};

class BufferPool {
 public:
  BufferPool();

  struct BufferLoan {
    std::int64_t lent_since_ns = 0;
    std::size_t bytes = 0;
  };
  // Lends a buffer, aligned to 8 bytes. Null when kMaxBuffers are lent already, or no memory is left.
  std::uint8_t* lend_buffer(const BufferLoan& loan);
  // Returns nullopt for a buffer that is not ours, or not lent.
  std::optional<BufferLoan> find_loan(const std::uint8_t* buffer) const;
  void return_buffer(const std::uint8_t* buffer);

  // Stops waiting for all buffers that are lent now; they may still come back.
  void abandon_lent_buffers();
  // Buffers whose return is awaited.
  struct LentBufferTotals {
    std::size_t bytes = 0;
    std::optional<std::int64_t> oldest_ns;  // when the oldest was lent; nullopt: none is lent
  };
  LentBufferTotals lent_buffers() const;

 private:
  struct FreeDeleter {
    void operator()(std::uint8_t* memory) const { std::free(memory); }
  };
  using Buffer = std::unique_ptr<std::uint8_t, FreeDeleter>;
  struct LentBuffer {
    Buffer buffer;
    BufferLoan loan;
    bool is_awaited = true;
  };
  std::size_t find_lent_buffer(const std::uint8_t* buffer) const;

  mutable std::mutex lock_;
  std::vector<Buffer> free_buffers_;
  std::vector<LentBuffer> lent_buffers_;  // usually a few
};

}  // namespace joulemap::capture::cupti
