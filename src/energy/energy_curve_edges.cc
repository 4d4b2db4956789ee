// SPDX-License-Identifier: Apache-2.0
//
// Uncertainty of an EnergyCurve at one time and between two times.
#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/quadrature.h"
#include "energy/energy_curve.h"

namespace joulemap {
namespace {

// Minimum known fraction of a window; below it the window has no energy value.
constexpr double kLeastKnownShare = 0.01;

EnergyTally tally_since(const EnergyTally& now, const EnergyTally& then) {
  EnergyTally tally = now;
  tally.wraps -= then.wraps;
  tally.resets -= then.resets;
  tally.possible_missed_wraps -= then.possible_missed_wraps;
  tally.updates -= then.updates;
  tally.good_readings -= then.good_readings;
  tally.gap_ns -= then.gap_ns;
  for (std::size_t code = 0; code < kReadCodeCount; ++code) tally.failures[code] -= then.failures[code];
  return tally;
}

}  // namespace

// Highest power near a time; bounds the power at that time.
double EnergyCurve::most_power_around(std::size_t after) const {
  double most_w = 0;
  for (std::size_t i = after - std::min<std::size_t>(after, 2); i + 1 < std::min(after + 2, points_.size()); ++i) {
    most_w = std::max(most_w, power_between(i));
  }
  return kMaxUnobservedPowerRatio * most_w;
}

double EnergyCurve::half_width_between(std::size_t after, const EnergyPoint& edge) const {
  if (channel_.kind == ChannelKind::gauge) return 0;  // trapezoid_error_j covers it
  const Point& from = points_[after - 1];
  const Point& to = points_[after];
  const double most_w = most_power_around(after);
  const double share = fraction_of_span(edge.time_ns, from.time_ns, to.time_ns);
  const double blur_s = (1 - share) * seconds(from.time_error_ns) + share * seconds(to.time_error_ns);
  double half_width_j = unobserved_half_width_j(from, to, edge, most_w);
  if (profile_.joules({from.time_ns, to.time_ns})) {
    const double moved_j = kPowerHistoryError * std::min(edge.joules - from.joules, to.joules - edge.joules);
    half_width_j = std::min(half_width_j, moved_j + most_w * kHistoryPeriod_s);
  }
  // Without a known update period, the age of a counter's first value is unknown.
  const bool is_guess = after == 1 && has_first_reading_ && has_counter_updates(channel_) && !refresh_.is_known();
  if (is_guess) half_width_j = std::max(half_width_j, kUninterpolatedEdgeError * (to.joules - from.joules));
  return half_width_j + std::min(most_w / kMaxUnobservedPowerRatio * blur_s, to.joules - from.joules);
}

// A counter is frozen when reads show no update for long. Without reads its state is unknown.
bool EnergyCurve::is_frozen(std::int64_t time_ns) const {
  const Point& last = points_.back();
  const double longest_s = std::max(kFrozenTail_s, kFrozenAfterUpdatePeriods * seconds(refresh_ns()));
  const bool failed = tally().last_code != ReadCode::ok;
  const bool frozen = has_counter_updates(channel_) && seconds(tally().last_ns - last.time_ns) > longest_s;
  if (failed || frozen) return true;
  if (profile_.joules({last.time_ns, time_ns})) return false;
  return seconds(time_ns - last.time_ns) > longest_s;
}

std::optional<CurveEdge> EnergyCurve::edge_at(std::int64_t time_ns) const {
  if (points_.empty()) return std::nullopt;
  const std::size_t after = first_point_after(time_ns + lag_ns_);
  if (after == 0) return has_first_reading_ ? std::optional(edge_before_first(time_ns)) : std::nullopt;
  return after == points_.size() ? edge_after_last(time_ns) : edge_between(time_ns, after);
}

CurveEdge EnergyCurve::edge_before_first(std::int64_t time_ns) const {
  CurveEdge edge{.time_ns = time_ns, .is_settled = true, .before_ns = time_ns};
  edge.energy.joules = points_.front().joules;
  edge.missing_s = seconds(points_.front().time_ns - lag_ns_ - time_ns);
  return edge;
}

CurveEdge EnergyCurve::edge_between(std::int64_t time_ns, std::size_t after) const {
  const std::int64_t shown_ns = time_ns + lag_ns_;
  const double joules = energy_between_points(after, shown_ns);
  const Point& from = points_[after - 1];
  const Point& to = points_[after];
  return {.time_ns = time_ns,
          .energy = {joules, half_width_between(after, {shown_ns, joules})},
          .is_settled = true,
          .before_ns = from.time_ns,
          .in_first_update_period = after == 1 && has_first_reading_ && has_counter_updates(channel_),
          .trapezoid_error_before_j2 = from.trapezoid_error_j2,
          .trapezoid_error_after_j2 = to.trapezoid_error_j2,
          .gap_before_ns = from.gap_ns,
          .gap_after_ns = to.gap_ns};
}

CurveEdge EnergyCurve::edge_after_last(std::int64_t time_ns) const {
  const Point& last = points_.back();
  const std::int64_t shown_ns = time_ns + lag_ns_;
  CurveEdge edge{.time_ns = time_ns,
                 .energy = {last.joules, 0},
                 .before_ns = last.time_ns,
                 .in_first_update_period = points_.size() == 1 && has_first_reading_ && has_counter_updates(channel_),
                 .trapezoid_error_before_j2 = last.trapezoid_error_j2,
                 .trapezoid_error_after_j2 = last.trapezoid_error_j2,
                 .gap_before_ns = last.gap_ns,
                 .gap_after_ns = tally().gap_ns};
  if (is_frozen(shown_ns)) {
    edge.missing_s = seconds(shown_ns - last.time_ns);
    return edge;
  }
  edge.energy.joules = energy_after_last(shown_ns);
  const double step_j = has_counter_updates(channel_) ? typical_update_j(tally(), refresh_.period_ns()) : 0;
  edge.energy.half_width_j = edge.energy.joules - last.joules + kUninterpolatedEdgeError * step_j;
  return edge;
}

// The energy of a gauge in a pause is interpolated between the readings around it; the true power may be anything in
// the gauge's observed range. A counter keeps counting during a pause.
void EnergyCurve::bridge_pauses(const TimeSpan& span, ChannelEnergy& energy, double& half_width_j) const {
  const bool is_gauge = channel_.kind == ChannelKind::gauge;
  pauses_.for_each([&](const TimeSpan& pause) {
    const double inside_s = seconds(std::min(pause.end_ns, span.end_ns) - std::max(pause.begin_ns, span.begin_ns));
    if (inside_s <= 0) return;
    ++energy.pauses;
    energy.unread_s += inside_s;
    if (!is_gauge) return;
    energy.interpolated_s += inside_s;
    const double bridge_w =
        (joules_at(pause.end_ns) - joules_at(pause.begin_ns)) / seconds(pause.end_ns - pause.begin_ns);
    half_width_j += inside_s * std::max({most_w_ - bridge_w, bridge_w - least_w_, 0.0});
  });
}

ChannelEnergy EnergyCurve::energy_between(std::int64_t begin_ns, std::int64_t end_ns) const {
  const std::optional<CurveEdge> begin = edge_at(begin_ns);
  const std::optional<CurveEdge> end = edge_at(end_ns);
  // Between the first reading and the first update, the age of the first value is unknown.
  const bool is_guess =
      begin && end && begin->in_first_update_period && end->in_first_update_period && !refresh_.is_known();
  if (begin && end && !is_guess) return energy_between(*begin, *end, {});
  ChannelEnergy energy{.channel = channel_, .tally = tally()};
  const double still_s = end ? seconds(std::max(tally().last_ns, end_ns) - end->before_ns) : 0;
  energy.reason = reason_for_no_update(tally(), still_s, seconds(refresh_ns()));
  return energy;
}

ChannelEnergy EnergyCurve::energy_between(const CurveEdge& begin, const CurveEdge& end,
                                          const EnergyTally& at_begin) const {
  ChannelEnergy energy{
      .channel = channel_, .refresh_s = seconds(refresh_ns()), .tally = tally_since(tally(), at_begin)};
  const double elapsed_s = seconds(end.time_ns - begin.time_ns);
  const bool failed = tally().last_code != ReadCode::ok;
  // No update after the begin.
  const bool nothing_seen = !begin.is_settled && (has_counter_updates(channel_) || failed || tally().good_readings < 2);
  if (nothing_seen) {
    const double still_s = seconds(std::max(tally().last_ns, end.time_ns) - end.before_ns);
    energy.reason = reason_for_no_update(tally(), still_s, energy.refresh_s);
    return energy;
  }
  double bridged_j = 0;
  bridge_pauses({begin.time_ns, end.time_ns}, energy, bridged_j);
  const double gap_s = seconds(end.gap_after_ns - begin.gap_before_ns);
  energy.missing_s = std::min(begin.missing_s + end.missing_s + gap_s + energy.interpolated_s, elapsed_s);
  const double still_s = seconds(tally().last_ns - end.before_ns);
  // No reading covers the window: 0 J with an interval would be an unfounded claim.
  const double known_s = elapsed_s - energy.missing_s + energy.interpolated_s;
  const bool is_empty = elapsed_s <= 0 && !begin.is_settled;
  if (is_empty || (energy.missing_s > 0 && known_s < kLeastKnownShare * elapsed_s)) {
    energy.reason = reason_for_no_update(tally(), has_counter_updates(channel_) ? still_s : 0, energy.refresh_s);
    return energy;
  }
  const bool is_frozen = has_counter_updates(channel_) && !failed && end.missing_s > 0;
  energy.frozen_s = is_frozen ? std::clamp(still_s, 0.0, std::min(end.missing_s, elapsed_s)) : 0;
  energy.joules = std::max(end.energy.joules - begin.energy.joules, 0.0);
  energy.tally.trapezoid_error_j =
      std::sqrt(std::max(end.trapezoid_error_after_j2 - begin.trapezoid_error_before_j2, 0.0));
  energy.uncertainty_j = window_uncertainty_j(channel_, *energy.joules,
                                              {.elapsed_s = elapsed_s,
                                               .missing_s = energy.missing_s - energy.interpolated_s,
                                               .bridged_j = bridged_j,
                                               .trapezoid_error_j = energy.tally.trapezoid_error_j,
                                               .begin_edge_j = begin.energy.half_width_j,
                                               .end_edge_j = end.energy.half_width_j});
  return energy;
}

}  // namespace joulemap
