// SPDX-License-Identifier: Apache-2.0
//
// StepExtents: the time that belongs to each step of one engine. A step begins where the step before it ended, if
// requests were unfinished then: they waited for the engine to schedule the step. Otherwise the engine was idle. Steps
// are added in the order of the recording. Memory: 16 bytes for each unfinished request. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_set>

#include "base/clock.h"
#include "model/engine_step.h"

namespace joulemap::attribution {

// A longer pause between two steps is idle time, even if requests are unfinished: the engine may have died.
inline constexpr std::int64_t kMaxSchedulingGap_ns = 100 * kNanosecondsPerMillisecond;

class StepExtents {
 public:
  // The begin of the time that belongs to the step.
  std::int64_t extended_begin_ns(const EngineStep& step, std::span<const StepRequest> entries) {
    std::int64_t begin_ns = step.begin_ns;
    // Unsigned: a damaged recording may contain any times.
    const std::uint64_t gap_ns = static_cast<std::uint64_t>(step.begin_ns) - static_cast<std::uint64_t>(last_end_ns_);
    const bool is_scheduling_gap = step.begin_ns > last_end_ns_ && gap_ns <= std::uint64_t{kMaxSchedulingGap_ns};
    if (has_step_ && is_scheduling_gap && !unfinished_requests_.empty()) begin_ns = last_end_ns_;
    if (has_step_ && step.begin_ns < last_begin_ns_) ++out_of_order_step_count_;
    for (const StepRequest& entry : entries) {
      if ((entry.events & (kRequestFinished | kRequestAborted)) != 0) {
        unfinished_requests_.erase(entry.request);
      } else {
        unfinished_requests_.insert(entry.request);
      }
    }
    if (step.end_ns > step.begin_ns) {
      last_end_ns_ = has_step_ ? std::max(last_end_ns_, step.end_ns) : step.end_ns;
      last_begin_ns_ = step.begin_ns;
      has_step_ = true;
    }
    return begin_ns;
  }
  std::uint64_t out_of_order_step_count() const { return out_of_order_step_count_; }

 private:
  std::unordered_set<std::uint32_t> unfinished_requests_;
  std::int64_t last_begin_ns_ = 0;
  std::int64_t last_end_ns_ = 0;
  bool has_step_ = false;
  std::uint64_t out_of_order_step_count_ = 0;
};

}  // namespace joulemap::attribution
