// SPDX-License-Identifier: Apache-2.0
//
// BurstSchedule: schedules burst sampling, in which CPU tallies are taken every 10 ms instead of every second or more.
// A CPU's energy counter updates every millisecond, so tallies at 10 ms let a report estimate the power of layers, not
// only their duration. Bursts cover the first 20 s; after that, bursts of 2 s become rarer. The total burst time grows
// with the logarithm of the run time: 3 minutes a day. Pure. Times are nanoseconds since the capture began. Used by the
// capture's own thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/activity.h"

namespace joulemap::capture {

class BurstSchedule {
 public:
  // Returns whether this tick is inside a burst, so that its tallies are taken now.
  bool is_in_burst(std::int64_t run_ns);

  void add(Activity activity) { activities_.push_back(std::move(activity)); }
  std::vector<Activity> take() { return std::exchange(activities_, {}); }

 private:
  std::int64_t burst_end_ns_ = 0;
  std::int64_t total_burst_ns_ = 0;  // total burst time so far
  std::vector<Activity> activities_;
};

}  // namespace joulemap::capture
