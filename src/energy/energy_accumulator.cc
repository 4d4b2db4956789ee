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
constexpr std::int64_t kMinRefresh_ns = 100 * kNanosecondsPerMillisecond;

}  // namespace

void EnergyAccumulator::add(const Reading& reading) noexcept {
  if (reading.code == ReadCode::skipped) return;
  tally_.last_code = reading.code;
  if (reading.code != ReadCode::ok) {
    ++tally_.failures[static_cast<std::size_t>(reading.code)];
    return;
  }
  const Point point{reading.raw, reading.time_ns(), 0};
  if (!last_) {
    last_ = point;
    last_change_ns_ = point.time_ns - kMinRefresh_ns;
    tally_.first_ns = tally_.last_ns = point.time_ns;
    ++tally_.good_readings;
    return;
  }
  if (point.time_ns < last_->time_ns) return;  // a reading out of order is not usable
  if (kind_ == ChannelKind::counter) {
    add_counter_reading(point);
  } else {
    add_power_reading(point);
  }
}

std::optional<double> EnergyAccumulator::energy_between(const Point& from, const Point& to) noexcept {
  std::uint64_t units = 0;
  if (to.raw >= from.raw) {
    units = to.raw - from.raw;
  } else if (wrap_range_ && from.raw <= *wrap_range_) {
    units = *wrap_range_ - from.raw + to.raw;
  } else {
    return std::nullopt;
  }
  const double joules = static_cast<double>(units) * scale_;
  const std::int64_t elapsed_ns =
      std::max(to.time_ns - std::min(last_change_ns_, from.time_ns), kNanosecondsPerMillisecond);
  if (joules / seconds(elapsed_ns) >= kMaxPlausiblePower_w) return std::nullopt;
  return joules;
}

void EnergyAccumulator::accept(const Point& from, const Point& to, double joules) noexcept {
  if (to.raw < from.raw) ++tally_.wraps;
  const std::int64_t seen_before_ns = last_->time_ns;
  if (wrap_range_ && last_->joules > 0) {
    const double usual_w =
        last_->joules / seconds(std::max(last_->time_ns - tally_.first_ns, kNanosecondsPerMillisecond));
    const std::int64_t unseen_ns = to.time_ns - seen_before_ns;
    if (usual_w * seconds(unseen_ns) >= static_cast<double>(*wrap_range_) * scale_) {
      ++tally_.possible_missed_wraps;
      tally_.gap_ns += unseen_ns;
    }
  }
  Point point = to;
  point.joules = from.joules + joules;
  if (to.raw != from.raw) {
    ++tally_.updates;
    before_last_ = from;
    last_change_ns_ = to.time_ns;
    last_update_ = CounterUpdate{seen_before_ns, to.time_ns, point.joules};
  }
  last_ = point;
  tally_.joules = point.joules;
  tally_.last_ns = point.time_ns;
  ++tally_.good_readings;
}

void EnergyAccumulator::add_counter_reading(const Point& point) noexcept {
  std::uint64_t& torn = tally_.failures[static_cast<std::size_t>(ReadCode::torn)];
  if (const auto joules = energy_between(*last_, point)) {
    if (suspect_) ++torn;
    suspect_.reset();
    accept(*last_, point, *joules);
    return;
  }
  if (before_last_ && point.raw < last_->raw && point.raw >= before_last_->raw) {
    if (const auto joules = energy_between(*before_last_, point)) {
      ++torn;
      suspect_.reset();
      accept(Point(*before_last_), point, *joules);
      return;
    }
  }
  if (suspect_ && energy_between(*suspect_, point)) {
    ++tally_.resets;
    tally_.gap_ns += suspect_->time_ns - last_->time_ns;
    Point restart = *suspect_;
    restart.joules = last_->joules;
    suspect_.reset();
    before_last_.reset();
    last_change_ns_ = restart.time_ns - kMinRefresh_ns;
    last_ = restart;
    accept(restart, point, *energy_between(restart, point));
    return;
  }
  if (suspect_) ++torn;
  suspect_ = point;
}

void EnergyAccumulator::add_power_reading(const Point& point) noexcept {
  // Energy between two readings = mean of their powers x time. In the worst case the power equals one of them
  // throughout.
  const double elapsed_s = seconds(point.time_ns - last_->time_ns);
  const double from_w = static_cast<double>(last_->raw) * scale_;
  const double to_w = static_cast<double>(point.raw) * scale_;
  tally_.joules += 0.5 * (from_w + to_w) * elapsed_s;
  tally_.trapezoid_error_j = add_in_quadrature(tally_.trapezoid_error_j, 0.5 * (to_w - from_w) * elapsed_s);
  if (point.raw != last_->raw) {
    ++tally_.updates;
    last_update_ = CounterUpdate{last_->time_ns, point.time_ns, tally_.joules};
  }
  last_ = point;
  tally_.last_ns = point.time_ns;
  ++tally_.good_readings;
}

}  // namespace joulemap
