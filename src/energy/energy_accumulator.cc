// SPDX-License-Identifier: Apache-2.0
#include "energy/energy_accumulator.h"

#include <algorithm>

#include "base/clock.h"
#include "base/quadrature.h"

namespace joulemap {
namespace {

// A counter that updates every 100 ms and is polled every millisecond rises by 100 ms worth of energy between two
// polls. The power of a rise is therefore computed over the time since the last change, and over at least this long
// before the first change.
constexpr std::int64_t kMinCounterRiseInterval_ns = 100 * kNanosecondsPerMillisecond;

}  // namespace

void EnergyAccumulator::add(const Reading& reading) noexcept {
  if (reading.code == ReadCode::skipped) return;
  tally_.last_read_code = reading.code;
  if (reading.code != ReadCode::ok) {
    ++tally_.failure_counts[static_cast<std::size_t>(reading.code)];
    return;
  }
  const Point point{reading.raw, reading.time_ns(), 0};
  if (!last_point_) {
    last_point_ = point;
    last_change_ns_ = point.time_ns - kMinCounterRiseInterval_ns;
    tally_.first_ns = tally_.last_ns = point.time_ns;
    ++tally_.valid_reading_count;
    return;
  }
  if (point.time_ns < last_point_->time_ns) return;  // a reading out of order is not usable
  if (channel_kind_ == ChannelKind::counter) {
    add_counter_reading(point);
  } else {
    add_power_reading(point);
  }
}

std::optional<double> EnergyAccumulator::energy_between(const Point& begin_point, const Point& end_point) noexcept {
  std::uint64_t units = 0;
  if (end_point.raw >= begin_point.raw) {
    units = end_point.raw - begin_point.raw;
  } else if (wrap_range_ && begin_point.raw <= *wrap_range_) {
    units = *wrap_range_ - begin_point.raw + end_point.raw;
  } else {
    return std::nullopt;
  }
  const double joules = static_cast<double>(units) * joules_per_unit_;
  const std::int64_t elapsed_ns =
      std::max(end_point.time_ns - std::min(last_change_ns_, begin_point.time_ns), kNanosecondsPerMillisecond);
  if (joules / seconds(elapsed_ns) >= kMaxPlausiblePower_w) return std::nullopt;
  return joules;
}

void EnergyAccumulator::accept_point(const Point& begin_point, const Point& end_point, double joules) noexcept {
  if (end_point.raw < begin_point.raw) ++tally_.wrap_count;
  const std::int64_t previous_point_ns = last_point_->time_ns;
  if (wrap_range_ && last_point_->joules > 0) {
    const double usual_w =
        last_point_->joules / seconds(std::max(last_point_->time_ns - tally_.first_ns, kNanosecondsPerMillisecond));
    const std::int64_t read_interval_ns = end_point.time_ns - previous_point_ns;
    if (usual_w * seconds(read_interval_ns) >= static_cast<double>(*wrap_range_) * joules_per_unit_) {
      ++tally_.possible_missed_wrap_count;
      tally_.unknown_energy_ns += read_interval_ns;
    }
  }
  Point point = end_point;
  point.joules = begin_point.joules + joules;
  if (end_point.raw != begin_point.raw) {
    ++tally_.update_count;
    point_before_change_ = begin_point;
    last_change_ns_ = end_point.time_ns;
    last_update_ = CounterUpdate{previous_point_ns, end_point.time_ns, point.joules};
  }
  last_point_ = point;
  tally_.joules = point.joules;
  tally_.last_ns = point.time_ns;
  ++tally_.valid_reading_count;
}

void EnergyAccumulator::add_counter_reading(const Point& point) noexcept {
  std::uint64_t& torn_reading_count = tally_.failure_counts[static_cast<std::size_t>(ReadCode::torn)];
  if (const auto joules = energy_between(*last_point_, point)) {
    if (suspect_point_) ++torn_reading_count;
    suspect_point_.reset();
    accept_point(*last_point_, point, *joules);
    return;
  }
  if (point_before_change_ && point.raw < last_point_->raw && point.raw >= point_before_change_->raw) {
    if (const auto joules = energy_between(*point_before_change_, point)) {
      ++torn_reading_count;
      suspect_point_.reset();
      accept_point(Point(*point_before_change_), point, *joules);
      return;
    }
  }
  if (suspect_point_ && energy_between(*suspect_point_, point)) {
    ++tally_.reset_count;
    tally_.unknown_energy_ns += suspect_point_->time_ns - last_point_->time_ns;
    Point restart_point = *suspect_point_;
    restart_point.joules = last_point_->joules;
    suspect_point_.reset();
    point_before_change_.reset();
    last_change_ns_ = restart_point.time_ns - kMinCounterRiseInterval_ns;
    last_point_ = restart_point;
    accept_point(restart_point, point, *energy_between(restart_point, point));
    return;
  }
  if (suspect_point_) ++torn_reading_count;
  suspect_point_ = point;
}

void EnergyAccumulator::add_power_reading(const Point& point) noexcept {
  // Energy between two readings = mean of their powers x time. In the worst case the power equals one of them
  // throughout.
  const double elapsed_s = seconds(point.time_ns - last_point_->time_ns);
  const double previous_power_w = static_cast<double>(last_point_->raw) * joules_per_unit_;
  const double power_w = static_cast<double>(point.raw) * joules_per_unit_;
  tally_.joules += 0.5 * (previous_power_w + power_w) * elapsed_s;
  tally_.trapezoid_error_j =
      add_in_quadrature(tally_.trapezoid_error_j, 0.5 * (power_w - previous_power_w) * elapsed_s);
  if (point.raw != last_point_->raw) {
    ++tally_.update_count;
    last_update_ = CounterUpdate{last_point_->time_ns, point.time_ns, tally_.joules};
  }
  last_point_ = point;
  tally_.last_ns = point.time_ns;
  ++tally_.valid_reading_count;
}

}  // namespace joulemap
