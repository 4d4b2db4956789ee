// SPDX-License-Identifier: Apache-2.0
//
// BufferPool: memory that CUPTI fills with records and hands back. CUPTI keeps a buffer until it is full, or flushed, and
// none of its kernels runs any more; on a GPU that is never idle that means: until it is full. What it keeps nobody has seen
// yet, so buffers are lent in a size that fills in about a quarter of a second.
//
// Any thread; takes a lock for some nanoseconds. Times are CLOCK_MONOTONIC nanoseconds.
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

inline constexpr std::size_t kLargestBufferBytes = 256UL * 1024;  // 1200 kernels
inline constexpr std::size_t kSmallestBufferBytes = 32UL * 1024;  // 150
inline constexpr std::size_t kMostBuffers = 256;         // 64 MB: then records are dropped, and CUPTI counts them
inline constexpr std::size_t kSmallestRecordBytes = 72;  // a fill's, CUDA 11.0

// How large the next buffer is.
class BufferSizing {
 public:
  std::size_t next_bytes() const { return bytes_.load(std::memory_order_relaxed); }
  void on_full(std::int64_t took_ns) {
    const std::size_t bytes = next_bytes();
    if (took_ns < kSoonNs && bytes < kLargestBufferBytes) bytes_.store(bytes * 2);
    if (took_ns > kLateNs && bytes > kSmallestBufferBytes) bytes_.store(bytes / 2);
  }

 private:
  static constexpr std::int64_t kSoonNs = kNanosecondsPerSecond / 8;
  static constexpr std::int64_t kLateNs = kNanosecondsPerSecond / 2;
  std::atomic<std::size_t> bytes_{2 * kSmallestBufferBytes};
};

class BufferPool {
 public:
  BufferPool();

  struct Loan {
    std::int64_t since_ns = 0;
    std::size_t bytes = 0;
  };
  // Aligned to 8 bytes. Null when too many are lent already, or no memory is left.
  std::uint8_t* take(const Loan& loan);
  // Nothing when it is not one of ours, or not lent.
  std::optional<Loan> loan_of(const std::uint8_t* buffer) const;
  void give_back(const std::uint8_t* buffer);

  // What is lent now is not waited for any more; it may come back all the same.
  void write_off();
  // Of the buffers that are waited for.
  struct Lent {
    std::size_t bytes = 0;
    std::optional<std::int64_t> oldest_ns;
  };
  Lent lent() const;

 private:
  struct Free {
    void operator()(std::uint8_t* memory) const { std::free(memory); }
  };
  using Buffer = std::unique_ptr<std::uint8_t, Free>;
  struct GivenOut {
    Buffer buffer;
    Loan loan;
    bool is_waited_for = true;
  };
  std::size_t find(const std::uint8_t* buffer) const;

  mutable std::mutex lock_;
  std::vector<Buffer> free_;
  std::vector<GivenOut> given_out_;  // a few, as a rule
};

}  // namespace joulemap::capture::cupti
