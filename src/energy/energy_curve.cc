// SPDX-License-Identifier: Apache-2.0
#include "energy/energy_curve.h"

#include <algorithm>

#include "base/clock.h"
#include "model/thinning.h"

namespace joulemap {
namespace {

// The latest power is the mean over about this time: several updates, so that no single update dominates.
constexpr std::int64_t kLatestPower_ns = 20 * kNanosecondsPerMillisecond;
// The time of an update is most accurate after the clock has seen later updates. Much later its phase has drifted away.
constexpr std::int64_t kOpenFor_ns = 20 * kNanosecondsPerSecond;

std::int64_t nanoseconds(double time_s) {
  return static_cast<std::int64_t>(time_s * static_cast<double>(kNanosecondsPerSecond));
}

std::optional<std::int64_t> declared_refresh_ns(const Channel& channel) {
  return is_slow_counter(channel) ? std::optional(nanoseconds(channel.refresh_s)) : std::nullopt;
}

}  // namespace

EnergyCurve::EnergyCurve(const Channel& channel, Retention retention, std::optional<std::int64_t> known_refresh_ns)
    : channel_(channel),
      retention_(retention),
      lag_ns_(is_slow_counter(channel) && channel.domain_class == DomainClass::gpu ? kUsualCounterLag_ns : 0),
      accumulator_(channel),
      refresh_(known_refresh_ns ? known_refresh_ns : declared_refresh_ns(channel)),
      pauses_(channel) {
  if (retention == Retention::latest) points_.reserve(2 * kLatestPoints);
  if (!is_slow_counter(channel)) return;
  const double declared_ns = channel.refresh_s * static_cast<double>(kNanosecondsPerSecond);
  clock_.emplace(CounterClock::EqualValues::mean_no_update, kNvmlLatch_ns);
  clock_->suggest_period(declared_ns, kDeclaredPeriodTolerance * declared_ns);
}

std::int64_t EnergyCurve::refresh_ns() const { return refresh_.period_ns().value_or(nanoseconds(channel_.refresh_s)); }

void EnergyCurve::suggest_period(double period_ns, double tolerance_ns) noexcept {
  if (clock_) clock_->suggest_period(period_ns, tolerance_ns);
}

void EnergyCurve::observe(const Reading& reading) noexcept {
  const EnergyTally before = accumulator_.tally();
  const std::optional<CounterUpdate> previous = accumulator_.last_update();
  accumulator_.add(reading);
  if (clock_ && reading.code == ReadCode::ok) clock_->observe(reading.before_ns, reading.after_ns, reading.raw);
  const EnergyTally& now = accumulator_.tally();
  if (now.good_readings == before.good_readings) return;
  pauses_.add_reading(now.last_ns);
  if (!has_counter_updates(channel_)) {
    const double shown_w = static_cast<double>(reading.raw) * channel_.scale;
    least_w_ = now.good_readings == 1 ? shown_w : std::min(least_w_, shown_w);
    most_w_ = std::max(most_w_, shown_w);
    add({now.last_ns, now.joules, 0, now.last_ns, now.trapezoid_error_j * now.trapezoid_error_j, now.gap_ns});
    return;
  }
  if (now.good_readings == 1) {
    const std::int64_t half_refresh_ns = refresh_ns() / 2;
    add({now.first_ns - half_refresh_ns, 0, half_refresh_ns, reading.before_ns, 0, 0});
  } else if (now.updates != before.updates) {
    observe_update(previous, reading.before_ns);
  } else {
    points_.back().last_seen_ns = reading.before_ns;
  }
  refine_open_points(reading.before_ns);
}

// The update lies between two readings, at most one update period before the second; otherwise another would have
// followed.
void EnergyCurve::observe_update(const std::optional<CounterUpdate>& previous, std::int64_t read_ns) noexcept {
  const CounterUpdate& step = *accumulator_.last_update();
  if (previous) refresh_.add_interval(*previous, step);
  const std::int64_t unread_ns = step.time_ns - step.not_before_ns;
  const std::int64_t half_ns = std::min(unread_ns, refresh_ns()) / 2;
  // A declared update period may be wrong.
  const std::int64_t time_error_ns = refresh_.is_known() ? half_ns : unread_ns - half_ns;
  add({step.time_ns - half_ns, step.joules, time_error_ns, read_ns, 0, accumulator_.tally().gap_ns});
  if (has_first_reading_ && !has_first_time_ && !clock_) set_first_point_time();
}

// The value of the first reading dates from the update that precedes the first observed one.
void EnergyCurve::set_first_point_time() noexcept {
  if (!refresh_.is_known() || points_.size() < 2) return;
  Point& first = points_.front();
  first.time_ns = std::min(first.read_ns, points_[1].time_ns - refresh_ns());
  first.time_error_ns = points_[1].time_error_ns;
  has_first_time_ = true;
}

void EnergyCurve::add(Point next) noexcept {
  // The total falls only after a torn reading: its points are invalid and removed.
  while (!points_.empty() && points_.back().joules > next.joules) points_.pop_back();
  final_points_ = std::min(final_points_, points_.size());
  if (!points_.empty()) next.time_ns = std::max(next.time_ns, points_.back().time_ns + 1);
  const std::size_t most = retention_ == Retention::all ? kMaxPoints : 2 * kLatestPoints;
  if (points_.size() >= most) {
    const std::size_t open = points_.size() - final_points_;
    if (retention_ == Retention::all) {
      thin_series(points_, [this](const Point& before, const Point& point) {
        return std::any_of(retained_times_ns_.begin(), retained_times_ns_.end(), [&](std::int64_t time_ns) {
          return before.time_ns <= time_ns + 2 * (point.time_ns - before.time_ns) &&
                 time_ns <= point.time_ns + 2 * (point.time_ns - before.time_ns);
        });
      });
    } else {
      points_.erase(points_.begin(), points_.begin() + static_cast<std::ptrdiff_t>(kLatestPoints));
      has_first_reading_ = false;
    }
    final_points_ = points_.size() - std::min(open, points_.size());
  }
  points_.push_back(next);
}

// A slow counter shows the energy up to its last update, not up to the read. Points stay open while the clock may still
// improve their times.
void EnergyCurve::refine_open_points(std::int64_t now_ns) noexcept {
  if (!clock_ || !clock_->is_locked()) return;
  const std::int64_t time_error_ns = clock_->half_width_ns();
  for (std::size_t i = final_points_; i < points_.size(); ++i) {
    const std::int64_t least_ns = i > 0 ? points_[i - 1].time_ns + 1 : INT64_MIN;
    points_[i].time_ns = std::max(update_time_shown_by(i), least_ns);
    points_[i].time_error_ns = time_error_ns;
    if (i == final_points_ && points_[i].read_ns <= now_ns - kOpenFor_ns) ++final_points_;
  }
}

// The last update before the read that first showed the value. A read that began near an update may show it or the one
// before. A later read in the same period, which shows the same value or the next, decides.
std::int64_t EnergyCurve::update_time_shown_by(std::size_t index) const {
  const Point& point = points_[index];
  const auto period_ns = std::max(std::int64_t{1}, static_cast<std::int64_t>(clock_->period_ns()));
  const std::int64_t unsure_ns = 2 * clock_->half_width_ns() + kNvmlLatch_ns;
  const std::int64_t near_ns = point.read_ns + unsure_ns;
  std::int64_t update_ns = clock_->last_update_before(near_ns).midpoint_ns();
  // The clock returns an update that has certainly happened. Far from its known phase that may be one too early.
  update_ns += std::max(std::int64_t{0}, (near_ns - update_ns) / period_ns) * period_ns;
  if (update_ns <= point.read_ns - unsure_ns) return update_ns;
  if (point.last_seen_ns > update_ns + unsure_ns) return update_ns;
  const bool changed_soon =
      index + 1 < points_.size() && points_[index + 1].read_ns < update_ns + period_ns - unsure_ns;
  if (changed_soon) return update_ns - period_ns;
  const bool seen_before = index > 0 && points_[index - 1].time_ns > update_ns - 3 * period_ns / 2;
  return seen_before || update_ns <= point.read_ns ? update_ns : update_ns - period_ns;
}

std::size_t EnergyCurve::first_point_after(std::int64_t time_ns) const {
  const auto is_before = [](std::int64_t moment_ns, const Point& point) { return moment_ns < point.time_ns; };
  return static_cast<std::size_t>(std::upper_bound(points_.begin(), points_.end(), time_ns, is_before) -
                                  points_.begin());
}

double EnergyCurve::power_between(std::size_t from) const {
  const Point& a = points_[from];
  const Point& b = points_[from + 1];
  return (b.joules - a.joules) / std::max(seconds(b.time_ns - a.time_ns), 1e-9);
}

// The only rule for the energy between two points.
double EnergyCurve::energy_between_points(std::size_t after, std::int64_t time_ns) const {
  const Point& from = points_[after - 1];
  const Point& to = points_[after];
  const std::optional<double> profiled_j = profile_.joules({from.time_ns, to.time_ns});
  double share = fraction_of_span(time_ns, from.time_ns, to.time_ns);
  if (profiled_j && *profiled_j > 0) {
    const double until_j = profile_.joules_until(time_ns) - profile_.joules_until(from.time_ns);
    share = std::clamp(until_j / *profiled_j, 0.0, 1.0);
  }
  return from.joules + share * (to.joules - from.joules);
}

// Extrapolates with the history, scaled to the counter, or with the latest power.
double EnergyCurve::energy_after_last(std::int64_t time_ns) const {
  const Point& last = points_.back();
  if (const std::optional<double> profiled_j = profile_.joules({last.time_ns, time_ns})) {
    if (points_.size() < 2) return last.joules + *profiled_j;
    const Point& before = points_[points_.size() - 2];
    const std::optional<double> known_j = profile_.joules({before.time_ns, last.time_ns});
    const double scale = known_j && *known_j > 0 ? (last.joules - before.joules) / *known_j : 1;
    return last.joules + scale * *profiled_j;
  }
  // Without a known update period the time of a counter's first point is a guess and yields no power.
  const std::size_t first = has_counter_updates(channel_) && has_first_reading_ && !refresh_.is_known() ? 1 : 0;
  if (points_.size() < first + 2) return last.joules;
  std::size_t index = points_.size() - 2;
  while (index > first && last.time_ns - points_[index].time_ns < kLatestPower_ns) --index;
  const double elapsed_s = std::max(seconds(last.time_ns - points_[index].time_ns), 1e-9);
  return last.joules + (last.joules - points_[index].joules) / elapsed_s * seconds(time_ns - last.time_ns);
}

double EnergyCurve::joules_at(std::int64_t time_ns, std::int64_t lag_ns) const {
  if (points_.empty()) return 0;
  const std::int64_t shown_ns = time_ns + lag_ns;
  const std::size_t after = first_point_after(shown_ns);
  if (after == 0) return points_.front().joules;
  if (after < points_.size()) return energy_between_points(after, shown_ns);
  return is_frozen(shown_ns) ? points_.back().joules : energy_after_last(shown_ns);
}

std::optional<TimeSpan> EnergyCurve::covered_span() const {
  if (points_.empty()) return std::nullopt;
  return TimeSpan{points_.front().time_ns - lag_ns_, points_.back().time_ns - lag_ns_};
}

std::optional<double> EnergyCurve::mean_w(TimeSpan span) const {
  const std::optional<TimeSpan> known = covered_span();
  if (!known) return std::nullopt;
  const std::int64_t from_ns = std::max(span.begin_ns, known->begin_ns);
  const std::int64_t to_ns = std::min(span.end_ns, known->end_ns);
  if (to_ns <= from_ns || 2 * (to_ns - from_ns) < span.end_ns - span.begin_ns) return std::nullopt;
  return (joules_at(to_ns) - joules_at(from_ns)) / seconds(to_ns - from_ns);
}

std::vector<EnergyPoint> EnergyCurve::updates() const {
  if (!clock_ || !clock_->is_locked()) return {};
  return {points_.begin(), points_.end()};
}

}  // namespace joulemap
