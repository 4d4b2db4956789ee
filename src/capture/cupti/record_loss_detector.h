// SPDX-License-Identifier: Apache-2.0
//
// RecordLossDetector: detects that launched kernels are no longer recorded. Another profiler in the process (such as
// Kineto) registers its own buffers and clock with CUPTI. CUPTI supports one registration, so it no longer fills ours.
//
// Missing records alone prove nothing: CUPTI holds a buffer back while one of its kernels runs. So two seconds without
// records count as a loss only if more was launched than the buffers hold, or if CUPTI no longer uses our clock. Used
// by the polling thread; callers pass the times (CLOCK_MONOTONIC nanoseconds).
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace joulemap::capture::cupti {

inline constexpr std::int64_t kLossTimeout_ns = 2 * kNanosecondsPerSecond;

class RecordLossDetector {
 public:
  struct Snapshot {
    std::int64_t now_ns = 0;
    std::uint64_t launch_count = 0;          // total so far
    std::uint64_t record_count = 0;          // total passed on so far
    std::uint64_t lent_record_capacity = 0;  // number of records that fit into the lent buffers
    bool is_clock_replaced = false;
  };
  // Returns the time since which records are missing; nullopt when none are.
  std::optional<std::int64_t> find_loss_begin_ns(const Snapshot& snapshot);

  // Starts over: records were enabled, or recovered.
  void reset(const Snapshot& snapshot);

 private:
  Snapshot snapshot_at_last_record_;  // state when records last arrived
  std::optional<std::int64_t> no_records_since_ns_;
};

}  // namespace joulemap::capture::cupti
