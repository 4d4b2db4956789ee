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

// An observed change of a counter's total. The counter updated between `earliest_ns` and `time_ns`.
struct CounterUpdate {
  std::int64_t earliest_ns = 0;
  std::int64_t time_ns = 0;
  double joules = 0;  // total energy from this update on
};

struct EnergyTally {
  double joules = 0;  // since the first good reading
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;            // time of the last good reading
  std::int64_t unknown_energy_ns = 0;  // time whose energy is unknown: around resets, and where a wrap may be missed
  double trapezoid_error_j = 0;        // gauges: integration error of the trapezoids, root of the sum of squares
  std::uint64_t valid_reading_count = 0;
  std::uint64_t wrap_count = 0;
  std::uint64_t reset_count = 0;
  std::uint64_t possible_missed_wrap_count = 0;  // read gaps so long that the counter may have wrapped unseen
  std::uint64_t update_count = 0;                // observed changes
  std::array<std::uint64_t, kReadCodeCount>
      failure_counts{};  // by ReadCode; torn includes values found by later readings
  ReadCode last_read_code = ReadCode::ok;
};

class EnergyAccumulator {
 public:
  explicit EnergyAccumulator(const Channel& channel)
      : channel_kind_(channel.kind), joules_per_unit_(channel.scale), wrap_range_(channel.wrap_range) {}

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
  void accept_point(const Point& begin_point, const Point& end_point, double joules) noexcept;
  // Energy between two points in J; none if neither a rise nor a wrap is plausible.
  std::optional<double> energy_between(const Point& begin_point, const Point& end_point) noexcept;

  ChannelKind channel_kind_;
  double joules_per_unit_;
  std::optional<std::uint64_t> wrap_range_;

  EnergyTally tally_;
  std::optional<Point> last_point_;           // last good point
  std::optional<Point> point_before_change_;  // last good point before the latest change of the counter
  std::optional<Point> suspect_point_;        // a point that fits no rule yet
  std::optional<CounterUpdate> last_update_;
  std::int64_t last_change_ns_ = 0;
};

}  // namespace joulemap
