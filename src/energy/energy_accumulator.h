// SPDX-License-Identifier: Apache-2.0
//
// EnergyAccumulator: converts the readings of one channel, in order of time, to joules. Constant memory and no
// allocation after construction, so it can process runs of days.
//
// Counters wrap, reset, step back, freeze and can be read half-written. The rules:
//   - A rise counts if its power, over the time since the counter last changed, is below 10 kW.
//   - A fall is a wrap if the range is known and the resulting power is below 10 kW.
//   - Any other value is suspect, and the next reading decides. If that fits the last good value, the suspect was torn
//     and is dropped. If it fits the suspect, the counter was reset: the time between is a gap with unknown energy.
//   - A fall right after a rise is first compared with the value before that rise: the rise may have been torn.
//   - A time without readings in which the counter may have wrapped unseen is a gap, too.
// Gauges are integrated by trapezoids between good readings.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "model/channel.h"
#include "model/reading.h"

namespace joulemap {

// A change that implies more power is not energy. Far above the power of any package or GPU, far below what a reset of
// a counter implies.
inline constexpr double kMaxPlausiblePower_w = 10'000;

// An observed change of a counter's total. The counter updated between `not_before_ns` and `time_ns`.
struct CounterUpdate {
  std::int64_t not_before_ns = 0;
  std::int64_t time_ns = 0;
  double joules = 0;  // total energy from this update on
};

struct EnergyTally {
  double joules = 0;  // since the first good reading
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;      // time of the last good reading
  std::int64_t gap_ns = 0;       // time whose energy is unknown: around resets, and where a wrap may be missed
  double trapezoid_error_j = 0;  // gauges: integration error of the trapezoids, root of the sum of squares
  std::uint64_t good_readings = 0;
  std::uint64_t wraps = 0;
  std::uint64_t resets = 0;
  std::uint64_t possible_missed_wraps = 0;               // read gaps so long that the counter may have wrapped unseen
  std::uint64_t updates = 0;                             // observed changes
  std::array<std::uint64_t, kReadCodeCount> failures{};  // by ReadCode; torn includes values found by later readings
  ReadCode last_code = ReadCode::ok;
};

class EnergyAccumulator {
 public:
  explicit EnergyAccumulator(const Channel& channel)
      : kind_(channel.kind), scale_(channel.scale), wrap_range_(channel.wrap_range) {}

  void add(const Reading& reading) noexcept;

  const EnergyTally& tally() const { return tally_; }
  // The last change, if there was one.
  const std::optional<CounterUpdate>& last_update() const { return last_update_; }

 private:
  struct Point {
    std::uint64_t raw = 0;
    std::int64_t time_ns = 0;
    double joules = 0;  // total at this point
  };

  void add_counter_reading(const Point& point) noexcept;
  void add_power_reading(const Point& point) noexcept;
  void accept(const Point& from, const Point& to, double joules) noexcept;
  // Energy between two points in J; none if neither a rise nor a wrap is plausible.
  std::optional<double> energy_between(const Point& from, const Point& to) noexcept;

  ChannelKind kind_;
  double scale_;
  std::optional<std::uint64_t> wrap_range_;

  EnergyTally tally_;
  std::optional<Point> last_;         // last good point
  std::optional<Point> before_last_;  // last good point before the latest change of the counter
  std::optional<Point> suspect_;      // a point that fits no rule yet
  std::optional<CounterUpdate> last_update_;
  std::int64_t last_change_ns_ = 0;
};

}  // namespace joulemap
