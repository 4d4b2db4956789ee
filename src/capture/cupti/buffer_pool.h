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

inline constexpr std::size_t kLargestBufferBytes = 256UL * 1024;  // 1200 kernels
inline constexpr std::size_t kSmallestBufferBytes = 32UL * 1024;  // 150 kernels
inline constexpr std::size_t kMostBuffers = 256;                  // 64 MB; beyond it CUPTI drops and counts records
inline constexpr std::size_t kSmallestRecordBytes = 72;           // of a fill in CUDA 11.0

// Chooses the size of the next buffer.
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
  // Aligned to 8 bytes. Null when kMostBuffers are lent already, or no memory is left.
  std::uint8_t* take(const Loan& loan);
  // Returns nullopt for a buffer that is not ours, or not lent.
  std::optional<Loan> loan_of(const std::uint8_t* buffer) const;
  void give_back(const std::uint8_t* buffer);

  // Stops waiting for all buffers that are lent now; they may still come back.
  void write_off();
  // Buffers whose return is awaited.
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
  std::vector<GivenOut> given_out_;  // usually a few
};

}  // namespace joulemap::capture::cupti
