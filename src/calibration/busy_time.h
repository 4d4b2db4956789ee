// SPDX-License-Identifier: Apache-2.0
//
// BusyTime: the load of a GPU over time (1 loaded, 0 idle), averaged as a sensor averages: over an interval, or
// exponentially. Built once, queried often. Pure; nanoseconds of CLOCK_MONOTONIC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/load_phases.h"

namespace joulemap::calibration {

class BusyTime {
 public:
  // `loads`: intervals with load, disjoint and in order of time.
  explicit BusyTime(std::span<const LoadSpan> loads);

  // Fraction of an interval in which the GPU was busy; 0 for an empty interval.
  double busy_fraction(std::int64_t from_ns, double length_ns) const;

  // The load as an exponential average with the time constant `time_constant_ns`: 0 before the first load.
  class ExponentialAverage {
   public:
    ExponentialAverage(const BusyTime& busy, double time_constant_ns);
    double average_at(std::int64_t time_ns) const;

   private:
    const BusyTime* busy_time_;
    double time_constant_ns_;
    std::vector<double> averages_at_edges_;  // the average at begin and end of each load
  };

 private:
  double cumulative_busy_ns(double time_ns) const;  // busy nanoseconds between the origin and `time_ns`
  std::size_t count_edges_before(double time_ns) const;

  std::int64_t origin_ns_ = 0;
  std::vector<double> load_edges_ns_;         // since the origin: begin, end, begin, end ...
  std::vector<double> busy_ns_before_edges_;  // busy nanoseconds before each edge
};

}  // namespace joulemap::calibration
