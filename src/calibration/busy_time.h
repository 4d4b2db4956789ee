// SPDX-License-Identifier: Apache-2.0
//
// BusyTime: when a GPU was loaded, as sensors of different kinds would average it: 1 while it was, 0 while not. Made once,
// asked often. Pure; nanoseconds of CLOCK_MONOTONIC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/load_phases.h"

namespace joulemap::calibration {

class BusyTime {
 public:
  // In order of time, apart.
  explicit BusyTime(std::span<const LoadSpan> loads);

  // The share of a stretch in which it was busy.
  double mean(std::int64_t from_ns, double length_ns) const;

  // The same with an exponential memory.
  class Fading {
   public:
    Fading(const BusyTime& busy, double memory_ns);
    double at(std::int64_t time_ns) const;

   private:
    const BusyTime* busy_;
    double memory_ns_;
    std::vector<double> at_edges_;  // begin and end of each load
  };

 private:
  double until(double time_ns) const;  // busy nanoseconds
  std::size_t edges_before(double time_ns) const;

  std::int64_t origin_ns_ = 0;
  std::vector<double> edges_ns_;        // since the origin: begin, end, begin, end ...
  std::vector<double> busy_before_ns_;  // each edge
};

}  // namespace joulemap::calibration
