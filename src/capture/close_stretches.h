// SPDX-License-Identifier: Apache-2.0
//
// CloseStretches: when the sums of what ran on CPUs are taken every 10 ms and not every second or more. A CPU's
// energy counter is renewed every millisecond: sums that are as close let a report find out what layers draw, not
// only how long they took. All of the first 20 s, then bursts of 2 s that become rarer, so that what they add to a
// file grows with the logarithm of the run: 3 minutes of a day. Pure; nanoseconds since the capture began. The
// capture's own thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/activity.h"

namespace joulemap::capture {

class CloseStretches {
 public:
  // Whether a stretch ends here, at a tick.
  bool ends_at(std::int64_t run_ns);

  void add(Activity activity) { taken_.push_back(std::move(activity)); }
  std::vector<Activity> take() { return std::exchange(taken_, {}); }

 private:
  std::int64_t burst_end_ns_ = 0;
  std::int64_t spent_ns_ = 0;  // in bursts so far
  std::vector<Activity> taken_;
};

}  // namespace joulemap::capture
