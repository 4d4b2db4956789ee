// SPDX-License-Identifier: Apache-2.0
//
// PowerProfile: distributes the energy of a counter over time. A counter that is expensive to read is read every few
// seconds, while the device buffers its power every few milliseconds. The counter gives the amount, the power history
// the distribution. Bounded memory: a long history is thinned. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/time_points.h"

namespace joulemap {

class PowerProfile {
 public:
  // Points come in order of time; others are dropped. Each value covers the time since the previous one.
  void add(PowerPoint point);

  // Energy of the span in J according to the history; none when the history does not cover it.
  std::optional<double> energy_in_span_j(TimeSpan span) const;
  // Cumulative energy of the history at a time; meaningful where energy_in_span_j() covers it.
  double cumulative_energy_j(std::int64_t time_ns) const { return at(time_ns).joules; }

  bool empty() const { return cumulative_points_.empty(); }

 private:
  // Sums since the first value. A gap in the history adds nothing to either.
  struct CumulativePoint {
    std::int64_t time_ns = 0;
    double joules = 0;
    double covered_s = 0;
  };
  CumulativePoint at(std::int64_t time_ns) const;
  CumulativePoint extrapolate(const CumulativePoint& from, std::size_t value_index, std::int64_t time_ns) const;

  std::vector<CumulativePoint> cumulative_points_;
};

}  // namespace joulemap
