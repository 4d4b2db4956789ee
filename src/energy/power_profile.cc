// SPDX-License-Identifier: Apache-2.0
#include "energy/power_profile.h"

#include <algorithm>

#include "base/clock.h"
#include "energy/edge_rules.h"
#include "model/thinning.h"

namespace joulemap {
namespace {

// A longer gap in the history counts as not covered.
constexpr std::int64_t kMaxHole_ns = 500 * kNanosecondsPerMillisecond;
// Minimum covered fraction: the first and the last value lie some milliseconds off the edges of the span.
constexpr double kMinCoverage = 0.97;
// An hour and a half at 50 values a second.
constexpr std::size_t kMaxKnots = std::size_t{1} << 18;

}  // namespace

void PowerProfile::add(PowerPoint point) {
  if (knots_.empty()) {
    knots_.push_back({point.time_ns, 0, 0});
    return;
  }
  Knot knot = knots_.back();
  const std::int64_t length_ns = point.time_ns - knot.time_ns;
  if (length_ns <= 0) return;
  knot.time_ns = point.time_ns;
  if (length_ns <= kMaxHole_ns) {
    knot.joules += point.watts * seconds(length_ns);
    knot.covered_s += seconds(length_ns);
  }
  if (knots_.size() >= kMaxKnots) thin_series(knots_, [](const Knot&, const Knot&) { return false; });
  knots_.push_back(knot);
}

PowerProfile::Knot PowerProfile::at(std::int64_t time_ns) const {
  if (knots_.empty()) return {};
  const auto is_before = [](std::int64_t moment_ns, const Knot& knot) { return moment_ns < knot.time_ns; };
  const auto after = std::upper_bound(knots_.begin(), knots_.end(), time_ns, is_before);
  if (after == knots_.begin()) return knots_.front();
  if (after == knots_.end()) return knots_.back();
  const Knot& before = *std::prev(after);
  const double share = fraction_of_span(time_ns, before.time_ns, after->time_ns);
  return {time_ns, before.joules + share * (after->joules - before.joules),
          before.covered_s + share * (after->covered_s - before.covered_s)};
}

std::optional<double> PowerProfile::joules(TimeSpan span) const {
  if (knots_.empty() || span.end_ns <= span.begin_ns) return std::nullopt;
  const Knot from = at(span.begin_ns);
  const Knot to = at(span.end_ns);
  if (to.covered_s - from.covered_s < kMinCoverage * seconds(span.end_ns - span.begin_ns)) return std::nullopt;
  return to.joules - from.joules;
}

}  // namespace joulemap
