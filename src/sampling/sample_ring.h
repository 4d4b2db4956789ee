// SPDX-License-Identifier: Apache-2.0
//
// SampleRing: single-producer, single-consumer ring from the thread that reads a sensor to the thread that uses the
// samples. Fixed size, lock-free, no allocation after construction. When the consumer is too slow, the newest samples
// are dropped and counted.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

#include "model/sample.h"

namespace joulemap::sampling {

class SampleRing {
 public:
  explicit SampleRing(std::size_t min_capacity)
      : sample_slots_(std::bit_ceil(min_capacity)), index_mask_(sample_slots_.size() - 1) {}

  // Sensor thread only.
  void push(const Sample& sample) noexcept {
    const std::uint64_t written_count = written_count_.load(std::memory_order_relaxed);
    if (written_count - read_count_.load(std::memory_order_acquire) == sample_slots_.size()) {
      lost_count_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    sample_slots_[written_count & index_mask_] = sample;
    written_count_.store(written_count + 1, std::memory_order_release);
  }

  // Consumer thread only: calls use(sample) for all available samples, oldest first.
  template <class Use>
  void drain(Use&& use) {
    const std::uint64_t written_count = written_count_.load(std::memory_order_acquire);
    std::uint64_t read_count = read_count_.load(std::memory_order_relaxed);
    for (; read_count != written_count; ++read_count) {
      use(sample_slots_[read_count & index_mask_]);
      read_count_.store(read_count + 1, std::memory_order_release);
    }
  }

  std::uint64_t lost_count() const { return lost_count_.load(std::memory_order_relaxed); }

 private:
  std::vector<Sample> sample_slots_;
  std::uint64_t index_mask_;
  // On separate cache lines to avoid false sharing between the two threads.
  alignas(64) std::atomic<std::uint64_t> written_count_{0};
  alignas(64) std::atomic<std::uint64_t> read_count_{0};
  std::atomic<std::uint64_t> lost_count_{0};
};

}  // namespace joulemap::sampling
