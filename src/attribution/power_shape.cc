// SPDX-License-Identifier: Apache-2.0
#include "attribution/power_shape.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace joulemap::attribution {
namespace {

// A history with a hole this long tells nothing of what was in it.
constexpr std::int64_t kMostGap_ns = 500 * kNanosecondsPerMillisecond;
// The first value and the last are some milliseconds off the edges of what they are asked about.
constexpr double kLeastKnown = 0.97;

TimeSpan common(TimeSpan a, TimeSpan b) { return {std::max(a.begin_ns, b.begin_ns), std::min(a.end_ns, b.end_ns)}; }

// The edge lies before the first step or after the last, and `next_to` it `next_j` were drawn.
void draw_edge(TimeCurve& curve, const PowerShape& shape, TimeSpan edge, TimeSpan next_to, double next_j) {
  if (edge.end_ns <= edge.begin_ns || next_to.end_ns <= next_to.begin_ns) return;
  const std::optional<double> told_edge_j = shape.told_j(edge);
  const std::optional<double> told_next_j = shape.told_j(next_to);
  const bool is_told = told_edge_j && told_next_j && *told_next_j > 0;
  const double by_time = seconds(edge.end_ns - edge.begin_ns) / seconds(next_to.end_ns - next_to.begin_ns);
  shape.draw(curve, edge, next_j * (is_told ? *told_edge_j / *told_next_j : by_time));
}

}  // namespace

PowerShape::PowerShape(TimeSpan span) : span_(span), drawn_j_(span, cells_for(span)), known_s_(span, cells_for(span)) {}

// Each value holds since the one before.
void PowerShape::add(PowerPoint point) {
  const std::optional<std::int64_t> last_ns = std::exchange(last_ns_, point.time_ns);
  if (!last_ns || point.time_ns - *last_ns > kMostGap_ns) return;
  const double time_s = seconds(point.time_ns - *last_ns);
  drawn_j_.add(*last_ns, point.time_ns, point.watts * time_s);
  known_s_.add(*last_ns, point.time_ns, time_s);
}

void PowerShape::finish() {
  drawn_j_.finish();
  known_s_.finish();
}

std::optional<double> PowerShape::told_j(TimeSpan between) const {
  const TimeSpan inside = common(between, span_);
  if (inside.end_ns <= inside.begin_ns) return std::nullopt;
  const double known_s = known_s_.between(inside.begin_ns, inside.end_ns);
  if (known_s < kLeastKnown * seconds(inside.end_ns - inside.begin_ns)) return std::nullopt;
  return drawn_j_.between(inside.begin_ns, inside.end_ns);
}

void PowerShape::draw(TimeCurve& curve, TimeSpan between, double joules) const {
  // Of what reaches out of the span nobody knows when it was drawn but that part of it was inside.
  const TimeSpan inside = common(between, span_);
  const double told_j = this->told_j(between).value_or(0);
  if (told_j <= 0) return curve.add(between.begin_ns, between.end_ns, joules);
  const double inside_j =
      joules * seconds(inside.end_ns - inside.begin_ns) / seconds(between.end_ns - between.begin_ns);
  const double cell_ns = static_cast<double>(span_.end_ns - span_.begin_ns) /
                         static_cast<double>(std::max<std::size_t>(drawn_j_.size(), 1));
  auto cell = static_cast<std::size_t>(static_cast<double>(inside.begin_ns - span_.begin_ns) / cell_ns);
  for (std::int64_t from_ns = inside.begin_ns; from_ns < inside.end_ns;) {
    const auto edge_ns = span_.begin_ns + static_cast<std::int64_t>(cell_ns * static_cast<double>(++cell));
    const std::int64_t to_ns = cell < drawn_j_.size() ? std::min(edge_ns, inside.end_ns) : inside.end_ns;
    if (to_ns <= from_ns) continue;
    curve.add(from_ns, to_ns, inside_j * drawn_j_.between(from_ns, to_ns) / told_j);
    from_ns = to_ns;
  }
}

TimeCurve drawn_between(std::span<const EnergyPoint> steps, const PowerShape& shape, const TimeCurve& like) {
  const TimeSpan span = like.span();
  TimeCurve curve(span, like.size());
  if (steps.size() < 2) return curve;
  const auto between = [&](std::size_t i) { return TimeSpan{steps[i].time_ns, steps[i + 1].time_ns}; };
  const auto joules = [&](std::size_t i) { return steps[i + 1].joules - steps[i].joules; };
  const std::size_t last = steps.size() - 2;
  draw_edge(curve, shape, {span.begin_ns, steps.front().time_ns}, between(0), joules(0));
  for (std::size_t i = 0; i <= last; ++i) {
    const TimeSpan one = between(i);
    if (one.end_ns > one.begin_ns && one.begin_ns < span.end_ns && one.end_ns > span.begin_ns)
      shape.draw(curve, one, joules(i));
  }
  draw_edge(curve, shape, {steps.back().time_ns, span.end_ns}, between(last), joules(last));
  return curve;
}

}  // namespace joulemap::attribution
