// SPDX-License-Identifier: Apache-2.0
//
// OthersUse: how long processes that are not the command's kept a GPU busy, from the gauge that a recorder reads now and
// then (sensors/nvml/other_processes.h). Each reading tells the share of the time since the one before it; when within that
// time is not known, so it is spread evenly. Pure; CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attribution/ledger/time_curve.h"
#include "model/channel.h"
#include "model/diagnostics.h"
#include "model/reading.h"

namespace joulemap::attribution {

struct BusyStretch {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  double busy_s = 0;
};

bool tells_of_others(const Channel& channel);

class OthersUse {
 public:
  // In order of time.
  void add(const Reading& reading);
  bool is_any() const { return any_; }
  // Where they ran. The last reading holds until the end.
  std::vector<BusyStretch> inside(TimeSpan span) const;
  // Where they were there and nobody could tell what they used.
  void describe(const std::string& domain, Diagnostics& diagnostics) const;

 private:
  struct Point {
    std::int64_t time_ns;
    double share;  // of the time before; below 0: not known
  };
  std::vector<Point> points_;
  bool any_ = false;
  std::uint64_t failed_ = 0;
};

TimeCurve curve_of(const std::vector<BusyStretch>& stretches, TimeSpan span);

}  // namespace joulemap::attribution
