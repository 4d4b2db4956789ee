// SPDX-License-Identifier: Apache-2.0
//
// BurstSchedule: schedules burst sampling, in which the CPU times of scopes (tallies) are recorded at every tick of the
// capture (10 ms) instead of every 1 to 30 s. A CPU's energy counter updates every millisecond, so tallies of 10 ms let
// a report estimate the power of layers, not only their duration. Bursts cover the first 20 s; after that, they last
// 2 s and become rarer. The total burst time grows with the logarithm of the run time: 3 minutes a day. Pure. Times are
// nanoseconds since the capture began. Used by the capture's own thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/activity.h"

namespace joulemap::capture {

class BurstSchedule {
 public:
  // Returns whether the tick at run_ns is inside a burst, so that its tallies are recorded. May begin a burst.
  bool begin_or_continue_burst(std::int64_t run_ns);

  // Tallies of bursts that wait to be written.
  void add_burst_tallies(Activity activity) { burst_tallies_.push_back(std::move(activity)); }
  std::vector<Activity> take_burst_tallies() { return std::exchange(burst_tallies_, {}); }

 private:
  std::int64_t burst_end_ns_ = 0;
  std::int64_t total_burst_ns_ = 0;  // total burst time so far
  std::vector<Activity> burst_tallies_;
};

}  // namespace joulemap::capture
