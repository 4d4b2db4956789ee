// SPDX-License-Identifier: Apache-2.0
#include "energy/energy_curve.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/quadrature.h"
#include "model/thinning.h"

namespace joulemap {
namespace {

// The latest power is the mean over about this time: several updates, so that no single update dominates.
constexpr std::int64_t kLatestPowerWindow_ns = 20 * kNanosecondsPerMillisecond;
// The clock improves the time of a point for this long after the point was read: later updates make it more accurate.
// Much later, the phase of the clock has drifted.
constexpr std::int64_t kPointRefinementTime_ns = 20 * kNanosecondsPerSecond;

std::int64_t seconds_to_ns(double time_s) {
  return static_cast<std::int64_t>(time_s * static_cast<double>(kNanosecondsPerSecond));
}

std::optional<std::int64_t> declared_refresh_ns(const Channel& channel) {
  return is_slowly_updating_counter(channel) ? std::optional(seconds_to_ns(channel.refresh_s)) : std::nullopt;
}

}  // namespace

EnergyCurve::EnergyCurve(const Channel& channel, Retention retention, std::optional<std::int64_t> known_refresh_ns)
    : channel_(channel),
      retention_(retention),
      lag_ns_(is_slowly_updating_counter(channel) && channel.domain_class == DomainClass::gpu ? kUsualCounterLag_ns
                                                                                              : 0),
      accumulator_(channel),
      update_period_estimate_(known_refresh_ns ? known_refresh_ns : declared_refresh_ns(channel)),
      read_pauses_(channel) {
  if (retention == Retention::latest) points_.reserve(2 * kLatestPoints);
  if (!is_slowly_updating_counter(channel)) return;
  const double declared_ns = channel.refresh_s * static_cast<double>(kNanosecondsPerSecond);
  update_clock_.emplace(UpdateTimeEstimator::EqualValueMeaning::no_update, kNvmlLatchDelay_ns);
  update_clock_->suggest_period(declared_ns, kDeclaredPeriodTolerance * declared_ns);
}

std::int64_t EnergyCurve::refresh_ns() const {
  return update_period_estimate_.period_ns().value_or(seconds_to_ns(channel_.refresh_s));
}

void EnergyCurve::suggest_period(double period_ns, double tolerance_ns) noexcept {
  if (update_clock_) update_clock_->suggest_period(period_ns, tolerance_ns);
}

// Half of the duration of a read, in which the value was taken at an unknown time. A read takes long if the kernel
// preempts its thread. 0 if the UpdateTimeEstimator accounts for the duration.
std::int64_t EnergyCurve::read_error_ns(const Reading& reading) const {
  return update_clock_ ? 0 : (reading.after_ns - reading.before_ns) / 2;
}

void EnergyCurve::observe(const Reading& reading) noexcept {
  const EnergyTally previous_tally = accumulator_.tally();
  const std::optional<CounterUpdate> previous = accumulator_.last_update();
  accumulator_.add(reading);
  if (update_clock_ && reading.code == ReadCode::ok)
    update_clock_->observe(reading.before_ns, reading.after_ns, reading.raw);
  const EnergyTally& current_tally = accumulator_.tally();
  if (current_tally.valid_reading_count == previous_tally.valid_reading_count) return;
  read_pauses_.add_reading(current_tally.last_ns);
  if (!has_counter_updates(channel_)) {
    const double gauge_power_w = static_cast<double>(reading.raw) * channel_.scale;
    min_gauge_w_ = current_tally.valid_reading_count == 1 ? gauge_power_w : std::min(min_gauge_w_, gauge_power_w);
    max_gauge_w_ = std::max(max_gauge_w_, gauge_power_w);
    add({current_tally.last_ns, current_tally.joules, 0, current_tally.last_ns,
         current_tally.trapezoid_error_j * current_tally.trapezoid_error_j, current_tally.unknown_energy_ns});
    points_.back().gauge_w = gauge_power_w;
    return;
  }
  if (current_tally.valid_reading_count == 1) {
    const std::int64_t half_refresh_ns = refresh_ns() / 2;
    add({current_tally.first_ns - half_refresh_ns, 0, half_refresh_ns, reading.before_ns, 0, 0});
    points_.back().read_error_ns = read_error_ns(reading);
  } else if (current_tally.update_count != previous_tally.update_count) {
    observe_update(previous, reading);
  } else {
    points_.back().last_read_with_value_ns = reading.before_ns;
  }
  refine_recent_points(reading.before_ns);
}

// Adds the point of a counter update. It lies between two readings, at most one update period before the second: if it
// were earlier, the second reading would show a later update.
void EnergyCurve::observe_update(const std::optional<CounterUpdate>& previous, const Reading& reading) noexcept {
  const CounterUpdate& step = *accumulator_.last_update();
  if (previous) update_period_estimate_.add_interval(*previous, step);
  const std::int64_t read_interval_ns = step.time_ns - step.earliest_ns;
  const std::int64_t half_ns = std::min(read_interval_ns, refresh_ns()) / 2;
  // Without an observed update period, the declared one may be wrong: the update may lie anywhere between the readings.
  const std::int64_t time_error_ns = update_period_estimate_.is_known() ? half_ns : read_interval_ns - half_ns;
  add({step.time_ns - half_ns, step.joules, time_error_ns, reading.before_ns, 0,
       accumulator_.tally().unknown_energy_ns});
  points_.back().read_error_ns = read_error_ns(reading);
  if (starts_at_first_reading_ && !is_first_time_computed_ && !update_clock_) set_first_point_time();
}

// Sets the time of the first point: its value dates from the update before the first observed one.
void EnergyCurve::set_first_point_time() noexcept {
  if (!update_period_estimate_.is_known() || points_.size() < 2) return;
  CurvePoint& first_point = points_.front();
  first_point.time_ns = std::min(first_point.read_ns, points_[1].time_ns - refresh_ns());
  first_point.time_error_ns = points_[1].time_error_ns;
  is_first_time_computed_ = true;
}

void EnergyCurve::add(CurvePoint new_point) noexcept {
  // The total falls only after a torn reading: its points are invalid and removed.
  while (!points_.empty() && points_.back().joules > new_point.joules) points_.pop_back();
  final_point_count_ = std::min(final_point_count_, points_.size());
  if (!points_.empty()) new_point.time_ns = std::max(new_point.time_ns, points_.back().time_ns + 1);
  const std::size_t max_point_count = retention_ == Retention::all ? kMaxPoints : 2 * kLatestPoints;
  if (points_.size() >= max_point_count) {
    const std::size_t provisional_point_count = points_.size() - final_point_count_;
    if (retention_ == Retention::all) {
      thin_series(points_, [this](const CurvePoint& previous_point, const CurvePoint& point) {
        return std::any_of(retained_times_ns_.begin(), retained_times_ns_.end(), [&](std::int64_t time_ns) {
          return previous_point.time_ns <= time_ns + 2 * (point.time_ns - previous_point.time_ns) &&
                 time_ns <= point.time_ns + 2 * (point.time_ns - previous_point.time_ns);
        });
      });
    } else {
      points_.erase(points_.begin(), points_.begin() + static_cast<std::ptrdiff_t>(kLatestPoints));
      starts_at_first_reading_ = false;
    }
    final_point_count_ = points_.size() - std::min(provisional_point_count, points_.size());
  }
  points_.push_back(new_point);
}

// Sets the times of the points of a slow counter from its clock: a read shows the energy up to the last update, not up
// to the read. Points stay open while the clock may still improve their times.
void EnergyCurve::refine_recent_points(std::int64_t now_ns) noexcept {
  if (!update_clock_ || !update_clock_->is_locked()) return;
  const std::int64_t time_error_ns = update_clock_->known_update_half_width_ns();
  for (std::size_t i = final_point_count_; i < points_.size(); ++i) {
    const std::int64_t min_time_ns = i > 0 ? points_[i - 1].time_ns + 1 : INT64_MIN;
    points_[i].time_ns = std::max(update_time_of_point(i), min_time_ns);
    points_[i].time_error_ns = time_error_ns;
    if (i == final_point_count_ && points_[i].read_ns <= now_ns - kPointRefinementTime_ns) ++final_point_count_;
  }
}

// Time of the update whose value a point shows: the last update before the first read of that value. If the read began
// near an update, it may show that update or the one before. A later read in the same period decides.
std::int64_t EnergyCurve::update_time_of_point(std::size_t index) const {
  const CurvePoint& point = points_[index];
  const auto period_ns = std::max(std::int64_t{1}, static_cast<std::int64_t>(update_clock_->period_ns()));
  const std::int64_t update_uncertainty_ns = 2 * update_clock_->known_update_half_width_ns() + kNvmlLatchDelay_ns;
  const std::int64_t latest_possible_update_ns = point.read_ns + update_uncertainty_ns;
  std::int64_t update_ns = update_clock_->last_update_before(latest_possible_update_ns).midpoint_ns();
  // The clock returns an update that has certainly happened. Far from the updates that the clock has seen, that may be
  // one too early.
  update_ns += std::max(std::int64_t{0}, (latest_possible_update_ns - update_ns) / period_ns) * period_ns;
  if (update_ns <= point.read_ns - update_uncertainty_ns) return update_ns;
  if (point.last_read_with_value_ns > update_ns + update_uncertainty_ns) return update_ns;
  const bool has_early_next_change =
      index + 1 < points_.size() && points_[index + 1].read_ns < update_ns + period_ns - update_uncertainty_ns;
  if (has_early_next_change) return update_ns - period_ns;
  const bool is_previous_point_adjacent = index > 0 && points_[index - 1].time_ns > update_ns - 3 * period_ns / 2;
  return is_previous_point_adjacent || update_ns <= point.read_ns ? update_ns : update_ns - period_ns;
}

std::size_t EnergyCurve::first_point_after(std::int64_t time_ns) const {
  const auto is_before = [](std::int64_t searched_ns, const CurvePoint& point) { return searched_ns < point.time_ns; };
  return static_cast<std::size_t>(std::upper_bound(points_.begin(), points_.end(), time_ns, is_before) -
                                  points_.begin());
}

double EnergyCurve::mean_power_after_point_w(std::size_t point_index) const {
  const CurvePoint& begin_point = points_[point_index];
  const CurvePoint& end_point = points_[point_index + 1];
  return (end_point.joules - begin_point.joules) / std::max(seconds(end_point.time_ns - begin_point.time_ns), 1e-9);
}

// Energy at a time between two points, interpolated with the power history if it covers both, otherwise linearly in
// time. All energies of the curve use this rule.
double EnergyCurve::interpolated_energy_j(std::size_t next_point_index, std::int64_t time_ns) const {
  const CurvePoint& previous_point = points_[next_point_index - 1];
  const CurvePoint& next_point = points_[next_point_index];
  const std::optional<double> power_profile_energy_j =
      power_profile_.energy_in_span_j({previous_point.time_ns, next_point.time_ns});
  double share = fraction_of_span(time_ns, previous_point.time_ns, next_point.time_ns);
  if (power_profile_energy_j && *power_profile_energy_j > 0) {
    const double until_j =
        power_profile_.cumulative_energy_j(time_ns) - power_profile_.cumulative_energy_j(previous_point.time_ns);
    share = std::clamp(until_j / *power_profile_energy_j, 0.0, 1.0);
  }
  return previous_point.joules + share * (next_point.joules - previous_point.joules);
}

// Energy at a time after the last point, extrapolated with the power history, scaled to the counter, or else with the
// latest power.
double EnergyCurve::extrapolated_energy_j(std::int64_t time_ns) const {
  const CurvePoint& last_point = points_.back();
  if (const std::optional<double> power_profile_energy_j =
          power_profile_.energy_in_span_j({last_point.time_ns, time_ns})) {
    if (points_.size() < 2) return last_point.joules + *power_profile_energy_j;
    const CurvePoint& previous_point = points_[points_.size() - 2];
    const std::optional<double> profile_energy_to_last_j =
        power_profile_.energy_in_span_j({previous_point.time_ns, last_point.time_ns});
    const double scale = profile_energy_to_last_j && *profile_energy_to_last_j > 0
                             ? (last_point.joules - previous_point.joules) / *profile_energy_to_last_j
                             : 1;
    return last_point.joules + scale * *power_profile_energy_j;
  }
  // Without a known update period the time of a counter's first point is a guess and yields no power.
  const std::size_t first_usable_index =
      has_counter_updates(channel_) && starts_at_first_reading_ && !update_period_estimate_.is_known() ? 1 : 0;
  if (points_.size() < first_usable_index + 2) return last_point.joules;
  std::size_t index = points_.size() - 2;
  while (index > first_usable_index && last_point.time_ns - points_[index].time_ns < kLatestPowerWindow_ns) --index;
  const double elapsed_s = std::max(seconds(last_point.time_ns - points_[index].time_ns), 1e-9);
  return last_point.joules +
         (last_point.joules - points_[index].joules) / elapsed_s * seconds(time_ns - last_point.time_ns);
}

double EnergyCurve::joules_at(std::int64_t time_ns, std::int64_t lag_ns) const {
  if (points_.empty()) return 0;
  const std::int64_t lagged_time_ns = time_ns + lag_ns;
  const std::size_t next_point_index = first_point_after(lagged_time_ns);
  if (next_point_index == 0) return points_.front().joules;
  if (next_point_index < points_.size()) return interpolated_energy_j(next_point_index, lagged_time_ns);
  return has_stopped_updating(lagged_time_ns) ? points_.back().joules : extrapolated_energy_j(lagged_time_ns);
}

std::optional<TimeSpan> EnergyCurve::covered_span() const {
  if (points_.empty()) return std::nullopt;
  return TimeSpan{points_.front().time_ns - lag_ns_, points_.back().time_ns - lag_ns_};
}

std::optional<double> EnergyCurve::mean_w(TimeSpan span) const {
  const std::optional<TimeSpan> covered_time = covered_span();
  if (!covered_time) return std::nullopt;
  const std::int64_t from_ns = std::max(span.begin_ns, covered_time->begin_ns);
  const std::int64_t to_ns = std::min(span.end_ns, covered_time->end_ns);
  if (to_ns <= from_ns || 2 * (to_ns - from_ns) < span.end_ns - span.begin_ns) return std::nullopt;
  return (joules_at(to_ns) - joules_at(from_ns)) / seconds(to_ns - from_ns);
}

std::vector<EnergyPoint> EnergyCurve::counter_updates() const {
  if (!update_clock_ || !update_clock_->is_locked()) return {};
  return {points_.begin(), points_.end()};
}

// Uncertainty of an EnergyCurve at one time and between two times.

namespace {

// Minimum known fraction of a window; below it the window has no energy value.
constexpr double kMinKnownWindowFraction = 0.01;

EnergyTally subtract_tally(const EnergyTally& current_tally, const EnergyTally& earlier_tally) {
  EnergyTally tally = current_tally;
  tally.wrap_count -= earlier_tally.wrap_count;
  tally.reset_count -= earlier_tally.reset_count;
  tally.possible_missed_wrap_count -= earlier_tally.possible_missed_wrap_count;
  tally.update_count -= earlier_tally.update_count;
  tally.valid_reading_count -= earlier_tally.valid_reading_count;
  tally.unknown_energy_ns -= earlier_tally.unknown_energy_ns;
  for (std::size_t code = 0; code < kReadCodeCount; ++code)
    tally.failure_counts[code] -= earlier_tally.failure_counts[code];
  return tally;
}

}  // namespace

// Upper bound of the power near the point `next_point_index`, in W: a multiple of the highest power between the points
// around it.
double EnergyCurve::max_power_around_w(std::size_t next_point_index) const {
  double max_power_w = 0;
  for (std::size_t i = next_point_index - std::min<std::size_t>(next_point_index, 2);
       i + 1 < std::min(next_point_index + 2, points_.size()); ++i) {
    max_power_w = std::max(max_power_w, mean_power_after_point_w(i));
  }
  return kMaxUnobservedPowerRatio * max_power_w;
}

double EnergyCurve::edge_half_width_j(std::size_t next_point_index, const EnergyPoint& edge) const {
  if (channel_.kind == ChannelKind::gauge) return 0;  // trapezoid_error_j covers it
  const CurvePoint& previous_point = points_[next_point_index - 1];
  const CurvePoint& next_point = points_[next_point_index];
  const double max_power_w = max_power_around_w(next_point_index);
  const double share = fraction_of_span(edge.time_ns, previous_point.time_ns, next_point.time_ns);
  const double edge_time_error_s =
      (1 - share) * seconds(previous_point.time_error_ns) + share * seconds(next_point.time_error_ns);
  double half_width_j = max_edge_error_j(previous_point, next_point, edge, max_power_w);
  if (power_profile_.energy_in_span_j({previous_point.time_ns, next_point.time_ns})) {
    const double power_history_error_j =
        kPowerHistoryRelativeError * std::min(edge.joules - previous_point.joules, next_point.joules - edge.joules);
    half_width_j = std::min(half_width_j, power_history_error_j + max_power_w * kPowerHistoryPeriod_s);
  }
  // Without a known update period, the age of a counter's first value is unknown.
  const bool is_guess = next_point_index == 1 && starts_at_first_reading_ && has_counter_updates(channel_) &&
                        !update_period_estimate_.is_known();
  if (is_guess)
    half_width_j = std::max(half_width_j, kEdgeErrorInIncrements * (next_point.joules - previous_point.joules));
  half_width_j +=
      std::min(max_power_w / kMaxUnobservedPowerRatio * edge_time_error_s, next_point.joules - previous_point.joules);
  // The values of the two points may have been taken earlier or later during their reads, but not beyond the energy of
  // the neighbouring points.
  const double edge_read_error_s =
      (1 - share) * seconds(previous_point.read_error_ns) + share * seconds(next_point.read_error_ns);
  const double neighbour_energy_j = points_[std::min(next_point_index + 1, points_.size() - 1)].joules -
                                    points_[next_point_index - std::min<std::size_t>(next_point_index, 2)].joules;
  return half_width_j + std::min(max_power_w / kMaxUnobservedPowerRatio * edge_read_error_s, neighbour_energy_j);
}

// Whether the energy at `time_ns`, after the last point, cannot be extrapolated: the last read failed, reads have shown
// no update for long, or the last point is too old and no power history covers the time since.
bool EnergyCurve::has_stopped_updating(std::int64_t time_ns) const {
  const CurvePoint& last_point = points_.back();
  const double longest_s = std::max(kMinFrozenTail_s, kFrozenAfterUpdatePeriods * seconds(refresh_ns()));
  const bool is_last_read_failed = tally().last_read_code != ReadCode::ok;
  const bool frozen = has_counter_updates(channel_) && seconds(tally().last_ns - last_point.time_ns) > longest_s;
  if (is_last_read_failed || frozen) return true;
  if (power_profile_.energy_in_span_j({last_point.time_ns, time_ns})) return false;
  return seconds(time_ns - last_point.time_ns) > longest_s;
}

std::optional<WindowEdgeEnergy> EnergyCurve::edge_energy_at(std::int64_t time_ns) const {
  if (points_.empty()) return std::nullopt;
  const std::size_t next_point_index = first_point_after(time_ns + lag_ns_);
  if (next_point_index == 0)
    return starts_at_first_reading_ ? std::optional(edge_energy_before_first(time_ns)) : std::nullopt;
  return next_point_index == points_.size() ? edge_energy_after_last(time_ns)
                                            : edge_energy_between(time_ns, next_point_index);
}

WindowEdgeEnergy EnergyCurve::edge_energy_before_first(std::int64_t time_ns) const {
  WindowEdgeEnergy edge{.time_ns = time_ns, .is_settled = true, .previous_point_ns = time_ns};
  edge.cumulative_energy.joules = points_.front().joules;
  edge.nearest_point_gap_s = seconds(points_.front().time_ns - lag_ns_ - time_ns);
  edge.gauge_before_w = edge.gauge_after_w = points_.front().gauge_w;
  return edge;
}

WindowEdgeEnergy EnergyCurve::edge_energy_between(std::int64_t time_ns, std::size_t next_point_index) const {
  const std::int64_t lagged_time_ns = time_ns + lag_ns_;
  const double joules = interpolated_energy_j(next_point_index, lagged_time_ns);
  const CurvePoint& previous_point = points_[next_point_index - 1];
  const CurvePoint& next_point = points_[next_point_index];
  return {
      .time_ns = time_ns,
      .cumulative_energy = {joules, edge_half_width_j(next_point_index, {lagged_time_ns, joules})},
      .is_settled = true,
      .previous_point_ns = previous_point.time_ns,
      .is_in_first_update_period = next_point_index == 1 && starts_at_first_reading_ && has_counter_updates(channel_),
      .trapezoid_error_before_j2 = previous_point.trapezoid_error_j2,
      .trapezoid_error_after_j2 = next_point.trapezoid_error_j2,
      .unknown_energy_before_ns = previous_point.unknown_energy_ns,
      .unknown_energy_after_ns = next_point.unknown_energy_ns,
      .gauge_before_w = previous_point.gauge_w,
      .gauge_after_w = next_point.gauge_w};
}

WindowEdgeEnergy EnergyCurve::edge_energy_after_last(std::int64_t time_ns) const {
  const CurvePoint& last_point = points_.back();
  const std::int64_t lagged_time_ns = time_ns + lag_ns_;
  WindowEdgeEnergy edge{
      .time_ns = time_ns,
      .cumulative_energy = {last_point.joules, 0},
      .previous_point_ns = last_point.time_ns,
      .is_in_first_update_period = points_.size() == 1 && starts_at_first_reading_ && has_counter_updates(channel_),
      .trapezoid_error_before_j2 = last_point.trapezoid_error_j2,
      .trapezoid_error_after_j2 = last_point.trapezoid_error_j2,
      .unknown_energy_before_ns = last_point.unknown_energy_ns,
      .unknown_energy_after_ns = tally().unknown_energy_ns,
      .gauge_before_w = last_point.gauge_w,
      .gauge_after_w = last_point.gauge_w};
  if (has_stopped_updating(lagged_time_ns)) {
    edge.nearest_point_gap_s = seconds(lagged_time_ns - last_point.time_ns);
    return edge;
  }
  edge.cumulative_energy.joules = extrapolated_energy_j(lagged_time_ns);
  const double step_j =
      has_counter_updates(channel_) ? typical_update_energy_j(tally(), update_period_estimate_.period_ns()) : 0;
  edge.cumulative_energy.half_width_j =
      edge.cumulative_energy.joules - last_point.joules + kEdgeErrorInIncrements * step_j;
  return edge;
}

// Adds the pauses in reading within `span` to `energy`. The energy of a gauge in a pause is interpolated between the
// readings around it; the true power may be anything in the gauge's observed range. A counter keeps counting during a
// pause.
EnergyCurve::PauseError EnergyCurve::bridge_pauses(const TimeSpan& span, ChannelEnergy& energy) const {
  const bool is_gauge = channel_.kind == ChannelKind::gauge;
  PauseError error;
  read_pauses_.for_each_pause([&](const TimeSpan& pause) {
    const double inside_s = seconds(std::min(pause.end_ns, span.end_ns) - std::max(pause.begin_ns, span.begin_ns));
    if (inside_s <= 0) return;
    ++energy.pause_count;
    energy.total_pause_s += inside_s;
    if (!is_gauge) return;
    energy.interpolated_s += inside_s;
    const double mean_pause_power_w =
        (joules_at(pause.end_ns) - joules_at(pause.begin_ns)) / seconds(pause.end_ns - pause.begin_ns);
    error.half_width_j +=
        inside_s * std::max({max_gauge_w_ - mean_pause_power_w, mean_pause_power_w - min_gauge_w_, 0.0});
    const std::size_t next_point_index = first_point_after(pause.begin_ns);
    if (next_point_index == 0 || next_point_index == points_.size()) return;
    // The range of power contains the integration error of the pause. A thinned curve lacks the points around it.
    const CurvePoint& previous_point = points_[next_point_index - 1];
    const CurvePoint& next_point = points_[next_point_index];
    if (previous_point.time_ns == pause.begin_ns && next_point.time_ns == pause.end_ns)
      error.trapezoid_error_j2 += next_point.trapezoid_error_j2 - previous_point.trapezoid_error_j2;
  });
  return error;
}

ChannelEnergy EnergyCurve::energy_between(std::int64_t begin_ns, std::int64_t end_ns) const {
  const std::optional<WindowEdgeEnergy> begin = edge_energy_at(begin_ns);
  const std::optional<WindowEdgeEnergy> end = edge_energy_at(end_ns);
  // Between the first reading and the first update, the age of the first value is unknown.
  const bool is_guess = begin && end && begin->is_in_first_update_period && end->is_in_first_update_period &&
                        !update_period_estimate_.is_known();
  if (begin && end && !is_guess) return energy_between(*begin, *end, {});
  ChannelEnergy energy{.channel = channel_, .tally = tally()};
  const double unchanged_s = end ? seconds(std::max(tally().last_ns, end_ns) - end->previous_point_ns) : 0;
  energy.missing_reason = reason_for_no_update(tally(), unchanged_s, seconds(refresh_ns()));
  return energy;
}

ChannelEnergy EnergyCurve::energy_between(const WindowEdgeEnergy& begin, const WindowEdgeEnergy& end,
                                          const EnergyTally& begin_tally) const {
  ChannelEnergy energy{
      .channel = channel_, .refresh_s = seconds(refresh_ns()), .tally = subtract_tally(tally(), begin_tally)};
  const double elapsed_s = seconds(end.time_ns - begin.time_ns);
  const bool is_last_read_failed = tally().last_read_code != ReadCode::ok;
  // No update of the counter, or no second reading of the gauge, after the begin.
  const bool is_window_unobserved =
      !begin.is_settled && (has_counter_updates(channel_) || is_last_read_failed || tally().valid_reading_count < 2);
  if (is_window_unobserved) {
    const double unchanged_s = seconds(std::max(tally().last_ns, end.time_ns) - end.previous_point_ns);
    energy.missing_reason = reason_for_no_update(tally(), unchanged_s, energy.refresh_s);
    return energy;
  }
  const PauseError pause_error = bridge_pauses({begin.time_ns, end.time_ns}, energy);
  const double gap_s = seconds(end.unknown_energy_after_ns - begin.unknown_energy_before_ns);
  energy.missing_s =
      std::min(begin.nearest_point_gap_s + end.nearest_point_gap_s + gap_s + energy.interpolated_s, elapsed_s);
  const double unchanged_s = seconds(tally().last_ns - end.previous_point_ns);
  // No reading covers the window: 0 J with an interval would be an unfounded claim.
  const double known_s = elapsed_s - energy.missing_s + energy.interpolated_s;
  const bool is_empty = elapsed_s <= 0 && !begin.is_settled;
  if (is_empty || (energy.missing_s > 0 && known_s < kMinKnownWindowFraction * elapsed_s)) {
    energy.missing_reason =
        reason_for_no_update(tally(), has_counter_updates(channel_) ? unchanged_s : 0, energy.refresh_s);
    return energy;
  }
  const bool is_frozen = has_counter_updates(channel_) && !is_last_read_failed && end.nearest_point_gap_s > 0;
  energy.frozen_tail_s = is_frozen ? std::clamp(unchanged_s, 0.0, std::min(end.nearest_point_gap_s, elapsed_s)) : 0;
  energy.joules = std::max(end.cumulative_energy.joules - begin.cumulative_energy.joules, 0.0);
  energy.tally.trapezoid_error_j =
      std::sqrt(std::max(end.trapezoid_error_after_j2 - begin.trapezoid_error_before_j2, 0.0));
  const double trapezoid_error_j2 =
      end.trapezoid_error_after_j2 - begin.trapezoid_error_before_j2 - pause_error.trapezoid_error_j2;
  const bool depends_on_ticks = channel_.provenance == Provenance::estimated && channel_.uncertainty_w > 0;
  if (depends_on_ticks && elapsed_s < kMinEstimateTicks * channel_.refresh_s) energy.too_short_window_s = elapsed_s;
  energy.uncertainty_j = window_uncertainty_j(channel_, *energy.joules,
                                              {.elapsed_s = elapsed_s,
                                               .missing_s = energy.missing_s - energy.interpolated_s,
                                               .bridged_pause_half_width_j = pause_error.half_width_j,
                                               .trapezoid_error_j = std::sqrt(std::max(trapezoid_error_j2, 0.0)),
                                               .gauge_change_w = end.gauge_after_w - begin.gauge_before_w,
                                               .max_gauge_w = max_gauge_w_,
                                               .begin_edge_half_width_j = begin.cumulative_energy.half_width_j,
                                               .end_edge_half_width_j = end.cumulative_energy.half_width_j});
  return energy;
}

}  // namespace joulemap
