// SPDX-License-Identifier: Apache-2.0
#include "attribution/shaped_power.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace joulemap::attribution {
namespace {

// A history with a hole this long tells nothing of what was in it.
constexpr std::int64_t kMostGap_ns = 500 * kNanosecondsPerMillisecond;

// The history between two moments: each value holds since the one before. Nothing where it does not know all of that time.
std::vector<std::pair<TimeSpan, double>> told_between(const std::vector<PowerPoint>& history, TimeSpan between) {
  std::vector<std::pair<TimeSpan, double>> told;
  auto point = std::ranges::upper_bound(history, between.begin_ns, {}, &PowerPoint::time_ns);
  if (point == history.begin()) return {};
  for (; point != history.end(); ++point) {
    const std::int64_t from_ns = std::prev(point)->time_ns;
    if (point->time_ns - from_ns > kMostGap_ns) return {};
    told.push_back({{std::max(from_ns, between.begin_ns), std::min(point->time_ns, between.end_ns)}, point->watts});
    if (point->time_ns >= between.end_ns) return told;
  }
  return {};
}

// Between two steps of the counter: as the history has it, else evenly.
void draw_between(TimeCurve& shaped, const std::vector<PowerPoint>& history, TimeSpan between, double joules) {
  const std::vector<std::pair<TimeSpan, double>> told = told_between(history, between);
  double told_j = 0;
  for (const auto& [span, watts] : told) told_j += watts * seconds(span.end_ns - span.begin_ns);
  if (told_j <= 0) return shaped.add(between.begin_ns, between.end_ns, joules);
  for (const auto& [span, watts] : told) {
    shaped.add(span.begin_ns, span.end_ns, joules * watts * seconds(span.end_ns - span.begin_ns) / told_j);
  }
}

}  // namespace

std::vector<std::optional<double>> shaped_power(const RecordedEnergy::Result::DomainCurve& curve, std::size_t slices) {
  const TimeSpan span = curve.energy_j.span();
  const auto slice_ns = static_cast<double>(span.end_ns - span.begin_ns) / static_cast<double>(slices);
  TimeCurve shaped(span, slices);
  const auto add_evenly = [&](std::int64_t from_ns, std::int64_t to_ns) {
    if (to_ns <= from_ns) return;
    for (std::size_t i = 0; i < slices; ++i) {
      const std::int64_t begin_ns = span.begin_ns + static_cast<std::int64_t>(slice_ns * static_cast<double>(i));
      const std::int64_t end_ns = span.begin_ns + static_cast<std::int64_t>(slice_ns * static_cast<double>(i + 1));
      const std::int64_t left_ns = std::max(begin_ns, from_ns);
      const std::int64_t right_ns = std::min(end_ns, to_ns);
      if (right_ns > left_ns) shaped.add(left_ns, right_ns, curve.energy_j.between(left_ns, right_ns));
    }
  };
  if (curve.steps.size() < 2 || curve.history.size() < 2) {
    add_evenly(span.begin_ns, span.end_ns);
  } else {
    add_evenly(span.begin_ns, curve.steps.front().time_ns);
    for (std::size_t i = 1; i < curve.steps.size(); ++i) {
      const TimeSpan between{std::max(curve.steps[i - 1].time_ns, span.begin_ns),
                             std::min(curve.steps[i].time_ns, span.end_ns)};
      if (between.end_ns <= between.begin_ns) continue;
      const double joules = curve.energy_j.between(between.begin_ns, between.end_ns);
      draw_between(shaped, curve.history, between, joules);
    }
    add_evenly(curve.steps.back().time_ns, span.end_ns);
  }
  std::vector<std::optional<double>> watts;
  for (std::size_t i = 0; i < slices; ++i) watts.emplace_back(shaped[i] / shaped.cell_s());
  return watts;
}

}  // namespace joulemap::attribution
