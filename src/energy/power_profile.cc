// SPDX-License-Identifier: Apache-2.0
#include "energy/power_profile.h"

#include <algorithm>

#include "base/clock.h"
#include "energy/edge_rules.h"
#include "model/thinning.h"

namespace joulemap {
namespace {

// A longer gap in the history counts as not covered.
constexpr std::int64_t kMaxCoveredGap_ns = 500 * kNanosecondsPerMillisecond;
// Minimum covered fraction: the first and the last value lie some milliseconds off the edges of the span.
constexpr double kMinCoveredFraction = 0.97;
// An hour and a half at 50 values a second.
constexpr std::size_t kMaxKnots = std::size_t{1} << 18;

}  // namespace

void PowerProfile::add(PowerPoint point) {
  if (cumulative_points_.empty()) {
    cumulative_points_.push_back({point.time_ns, 0, 0});
    return;
  }
  CumulativePoint knot = cumulative_points_.back();
  const std::int64_t length_ns = point.time_ns - knot.time_ns;
  if (length_ns <= 0) return;
  knot.time_ns = point.time_ns;
  if (length_ns <= kMaxCoveredGap_ns) {
    knot.joules += point.watts * seconds(length_ns);
    knot.covered_s += seconds(length_ns);
  }
  if (cumulative_points_.size() >= kMaxKnots)
    thin_series(cumulative_points_, [](const CumulativePoint&, const CumulativePoint&) { return false; });
  cumulative_points_.push_back(knot);
}

// Outside of the history, the power is that of its value `value_index`; nothing of that time is covered.
PowerProfile::CumulativePoint PowerProfile::extrapolate(const CumulativePoint& from, std::size_t value_index,
                                                        std::int64_t time_ns) const {
  if (cumulative_points_.size() < 2) return from;
  const CumulativePoint& begin_point = cumulative_points_[value_index - 1];
  const CumulativePoint& end_point = cumulative_points_[value_index];
  const double power_w = (end_point.joules - begin_point.joules) / seconds(end_point.time_ns - begin_point.time_ns);
  return {time_ns, from.joules + power_w * seconds(time_ns - from.time_ns), from.covered_s};
}

PowerProfile::CumulativePoint PowerProfile::at(std::int64_t time_ns) const {
  if (cumulative_points_.empty()) return {};
  const auto is_before = [](std::int64_t searched_ns, const CumulativePoint& knot) {
    return searched_ns < knot.time_ns;
  };
  const auto next_point = std::upper_bound(cumulative_points_.begin(), cumulative_points_.end(), time_ns, is_before);
  if (next_point == cumulative_points_.begin()) return extrapolate(cumulative_points_.front(), 1, time_ns);
  if (next_point == cumulative_points_.end())
    return extrapolate(cumulative_points_.back(), cumulative_points_.size() - 1, time_ns);
  const CumulativePoint& previous_point = *std::prev(next_point);
  const double share = fraction_of_span(time_ns, previous_point.time_ns, next_point->time_ns);
  return {time_ns, previous_point.joules + share * (next_point->joules - previous_point.joules),
          previous_point.covered_s + share * (next_point->covered_s - previous_point.covered_s)};
}

std::optional<double> PowerProfile::energy_in_span_j(TimeSpan span) const {
  if (cumulative_points_.empty() || span.end_ns <= span.begin_ns) return std::nullopt;
  const CumulativePoint begin_point = at(span.begin_ns);
  const CumulativePoint end_point = at(span.end_ns);
  if (end_point.covered_s - begin_point.covered_s < kMinCoveredFraction * seconds(span.end_ns - span.begin_ns))
    return std::nullopt;
  return end_point.joules - begin_point.joules;
}

}  // namespace joulemap
