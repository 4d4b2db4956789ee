// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/probe_spans.h"

#include <algorithm>

#include "base/clock.h"

namespace joulemap::attribution {
namespace {

// Intersection of two spans; has length 0 where they do not overlap.
TimeSpan intersect_spans(const TimeSpan& a, const TimeSpan& b) {
  const std::int64_t begin_ns = std::max(a.begin_ns, b.begin_ns);
  return {begin_ns, std::max(begin_ns, std::min(a.end_ns, b.end_ns))};
}

}  // namespace

void ProbeSpans::add(std::uint32_t process, const Mark& mark) {
  if (mark.name != region_name_) return;
  if (mark.kind == MarkKind::region_begin)
    spans_by_region_id_[{process, mark.id}] = {mark.time_ns, command_span_.end_ns};
  if (mark.kind != MarkKind::region_end) return;
  const auto begun = spans_by_region_id_.find({process, mark.id});
  if (begun != spans_by_region_id_.end()) begun->second.end_ns = mark.time_ns;
}

void ProbeSpans::finish() {
  std::vector<TimeSpan> clipped_spans;
  for (const auto& [key, span] : spans_by_region_id_) clipped_spans.push_back(intersect_spans(span, command_span_));
  std::sort(clipped_spans.begin(), clipped_spans.end(),
            [](const TimeSpan& a, const TimeSpan& b) { return a.begin_ns < b.begin_ns; });
  for (const TimeSpan& span : clipped_spans) {
    if (span.end_ns <= span.begin_ns) continue;
    if (!spans_.empty() && span.begin_ns <= spans_.back().end_ns) {
      spans_.back().end_ns = std::max(spans_.back().end_ns, span.end_ns);
    } else {
      spans_.push_back(span);
    }
  }
  spans_by_region_id_.clear();
}

double ProbeSpans::total_s() const { return time_in_spans_between_s(command_span_.begin_ns, command_span_.end_ns); }

double ProbeSpans::time_in_spans_between_s(std::int64_t from_ns, std::int64_t to_ns) const {
  std::int64_t sum_ns = 0;
  for (const TimeSpan& span : spans_) {
    const TimeSpan part = intersect_spans(span, {from_ns, to_ns});
    sum_ns += part.end_ns - part.begin_ns;
  }
  return seconds(sum_ns);
}

double ProbeSpans::energy_in_spans(const EnergyFunction& energy_j) const {
  return energy_in_spans_between(energy_j, command_span_.begin_ns, command_span_.end_ns);
}

double ProbeSpans::energy_in_spans_between(const EnergyFunction& energy_j, std::int64_t from_ns,
                                           std::int64_t to_ns) const {
  double sum = 0;
  for (const TimeSpan& span : spans_) {
    const TimeSpan part = intersect_spans(span, {from_ns, to_ns});
    if (part.end_ns > part.begin_ns) sum += energy_j(part.begin_ns, part.end_ns);
  }
  return sum;
}

}  // namespace joulemap::attribution
