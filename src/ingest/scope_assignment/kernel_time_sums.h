// SPDX-License-Identifier: Apache-2.0
//
// KernelTimeSums: count and total time of kernels for each kernel class, scope and queue, in one time slice of a trace
// at a time. Thousands of kernels give some hundred rows. Single-threaded; times are nanoseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "model/activity.h"

namespace joulemap::ingest {

class KernelTimeSums {
 public:
  void add(const Kernel& kernel, std::uint64_t count, std::int64_t time_ns) {
    KernelTally& row = find_or_add_row(kernel);
    row.count += count;
    row.time_ns += time_ns;
  }
  // Returns and clears the sums since the last call, ordered by scope, class and queue.
  std::vector<KernelTally> take_rows() {
    std::fill(row_index_slots_.begin(), row_index_slots_.end(), 0);
    std::sort(rows_.begin(), rows_.end(), [](const KernelTally& a, const KernelTally& b) {
      return std::tie(a.scope, a.class_id, a.queue) < std::tie(b.scope, b.class_id, b.queue);
    });
    return std::exchange(rows_, {});
  }

 private:
  KernelTally& find_or_add_row(const Kernel& kernel) {
    std::uint32_t& slot = find_row_slot(kernel.scope, kernel.class_id, kernel.queue);
    if (slot != 0) return rows_[slot - 1];
    rows_.push_back({kernel.class_id, kernel.queue, kernel.scope, 0, 0});
    slot = static_cast<std::uint32_t>(rows_.size());
    if (rows_.size() * 2 > row_index_slots_.size()) grow();
    return rows_.back();
  }

  // Returns the slot of the key, or the free slot where it belongs.
  std::uint32_t& find_row_slot(std::uint32_t scope, std::uint32_t class_id, std::uint32_t queue) {
    const std::uint64_t key_hash =
        (std::uint64_t{scope} << 32 ^ std::uint64_t{queue} << 24 ^ class_id) * kGoldenRatio64;
    const std::size_t mask = row_index_slots_.size() - 1;
    for (std::size_t slot_index = key_hash >> 40;; ++slot_index) {
      std::uint32_t& slot = row_index_slots_[slot_index & mask];
      if (slot == 0) return slot;
      const KernelTally& row = rows_[slot - 1];
      if (row.scope == scope && row.class_id == class_id && row.queue == queue) return slot;
    }
  }

  void grow() {
    row_index_slots_.assign(row_index_slots_.size() * 2, 0);
    for (std::uint32_t i = 0; i < rows_.size(); ++i)
      find_row_slot(rows_[i].scope, rows_[i].class_id, rows_[i].queue) = i + 1;
  }

  static constexpr std::size_t kInitialSlots = 256;  // a power of two

  std::vector<KernelTally> rows_;
  // Open addressing: row index + 1 at the position of its hash or the next free one; 0: free. At most half are taken.
  std::vector<std::uint32_t> row_index_slots_ = std::vector<std::uint32_t>(kInitialSlots);
};

}  // namespace joulemap::ingest
