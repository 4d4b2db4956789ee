// SPDX-License-Identifier: Apache-2.0
//
// LastKernelDurations: predicts the duration of a kernel in a chunk: that of the last kernel of its class and scope, in
// the caller's unit; 0 for the first. A flat hash table, because every chunk builds a new one. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "model/activity.h"

namespace joulemap::recording {

class LastKernelDurations {
 public:
  std::uint64_t& last_duration(const Kernel& kernel) {
    if (used_entry_count_ * 2 >= entries_.size()) grow();
    HashEntry& entry = find_or_add_entry(std::uint64_t{kernel.class_id} << 32 | kernel.scope);
    used_entry_count_ += entry.is_used ? 0 : 1;
    entry.is_used = true;
    return entry.duration;
  }

 private:
  struct HashEntry {
    std::uint64_t key = 0;
    std::uint64_t duration = 0;
    bool is_used = false;
  };

  // Linear probing: returns the entry of the key or the next free one, with its key set.
  HashEntry& find_or_add_entry(std::uint64_t key) {
    const std::size_t mask = entries_.size() - 1;
    std::size_t probe_index = (key * kGoldenRatio64) >> 40;
    while (entries_[probe_index & mask].is_used && entries_[probe_index & mask].key != key) ++probe_index;
    entries_[probe_index & mask].key = key;
    return entries_[probe_index & mask];
  }
  void grow() {
    const std::vector<HashEntry> old_entries =
        std::exchange(entries_, std::vector<HashEntry>(std::max<std::size_t>(2 * entries_.size(), 64)));
    for (const HashEntry& entry : old_entries) {
      if (entry.is_used) find_or_add_entry(entry.key) = entry;
    }
  }

  std::vector<HashEntry> entries_;  // size is a power of two, at most half of it used
  std::size_t used_entry_count_ = 0;
};

}  // namespace joulemap::recording
