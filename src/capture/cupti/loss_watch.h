// SPDX-License-Identifier: Apache-2.0
//
// LossWatch: decides whether kernels are launched that nobody tells us about. Another profiler in the process (Kineto, for
// one) registers its own buffers and clock with CUPTI, which has room for one; ours are then never called again.
//
// Silence alone proves nothing: CUPTI holds a buffer back as long as one of its kernels runs. So silence of two seconds
// counts when more was launched than the buffers could hold, or when CUPTI's clock is seen not to be ours any more.
// Of the thread that polls; times are given (CLOCK_MONOTONIC nanoseconds).
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace joulemap::capture::cupti {

inline constexpr std::int64_t kSilenceNs = 2 * kNanosecondsPerSecond;

class LossWatch {
 public:
  struct Seen {
    std::int64_t now_ns = 0;
    std::uint64_t launches = 0;  // counted from the beginning
    std::uint64_t records = 0;   // likewise; those with times of our clock
    std::uint64_t room = 0;      // records that fit into the buffers CUPTI may hold back
    bool clock_is_taken = false;
  };
  // Since when nothing is told that should be; nothing when all is well.
  std::optional<std::int64_t> lost_since(const Seen& seen);

  // Begins anew: records were switched on, or recovered.
  void restart(const Seen& seen);

 private:
  Seen last_record_;  // when records were last seen to come
  std::optional<std::int64_t> silent_since_ns_;
};

}  // namespace joulemap::capture::cupti
