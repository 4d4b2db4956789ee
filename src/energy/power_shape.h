// SPDX-License-Identifier: Apache-2.0
//
// PowerShape: when a device used the energy that its counter shows. A counter that is expensive to read is read every few
// seconds, while the device keeps a history of its power every few milliseconds: the counter gives the amount, the history
// the distribution over time. Bounded memory: a long history keeps fewer moments. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/time_points.h"

namespace joulemap {

class PowerShape {
 public:
  // In order of time; one that is not is dropped. Each value holds since the one before.
  void add(PowerPoint point);

  // The energy of that time according to the history; nothing where the history does not cover it.
  std::optional<double> joules(TimeSpan span) const;
  // The energy that the history had counted by a moment; meaningful where joules() covers it.
  double joules_until(std::int64_t time_ns) const { return at(time_ns).joules; }

  bool empty() const { return knots_.empty(); }

 private:
  // Sums since the first value. A hole in the history adds nothing to either.
  struct Knot {
    std::int64_t time_ns = 0;
    double joules = 0;
    double covered_s = 0;
  };
  Knot at(std::int64_t time_ns) const;

  std::vector<Knot> knots_;
};

}  // namespace joulemap
