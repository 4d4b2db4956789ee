// SPDX-License-Identifier: Apache-2.0
//
// PowerShape: when, between two reads of its counter, a device drew what the counter says. A counter that is dear to read is
// read every few seconds, while the device keeps a history of its power every few milliseconds: the counter says how much,
// the history only when. Spread evenly instead, the first steps of a training, which lie between reads with minutes of
// starting up, would be given several times what they drew. Constant memory, however long the recording. Pure; joules.
#pragma once

#include <optional>
#include <span>

#include "attribution/time_curve.h"

namespace joulemap::attribution {

class PowerShape {
 public:
  PowerShape() = default;  // knows nothing: all is spread evenly
  explicit PowerShape(TimeSpan span);

  // In order of time.
  void add(PowerPoint point);
  void finish();  // once nothing will be added any more

  // Spreads joules over the time between two moments; evenly where the history does not know all of that time.
  void draw(TimeCurve& curve, TimeSpan between, double joules) const;
  // What the device says it drew then; nothing where it does not know.
  std::optional<double> told_j(TimeSpan between) const;

 private:
  TimeSpan span_;
  TimeCurve drawn_j_;  // as the history has it
  TimeCurve known_s_;  // so much of each cell it knows
  std::optional<std::int64_t> last_ns_;
};

// Energy over time from what a counter said at its steps, in the cells of `like`. Where the first or the last of them does
// not reach to the edge: as it was next to them. Not finished; nothing in it where steps are too few.
TimeCurve drawn_between(std::span<const EnergyPoint> steps, const PowerShape& shape, const TimeCurve& like);

}  // namespace joulemap::attribution
