// SPDX-License-Identifier: Apache-2.0
//
// Idle gaps: times at which a GPU is known to have been idle. Kernel time is recorded as a sum over about a second, and
// nothing is known about when its kernels ran, except that they did not run in such a gap: after the last step before a
// checkpoint, say. Pure; CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "model/activity.h"
#include "model/time_points.h"

namespace joulemap::attribution {

// Gaps shorter than this, or than a small part of the interval, hardly change where kernels ran. Leaving them out
// bounds the number of gaps of a long run.
inline constexpr std::int64_t kMinIdleGap_ns = 50'000'000;
inline constexpr double kMinIdleGapShare = 0.05;

// Whether the activity is a single gap of at least kMinIdleGap_ns, as GpuWaitAttribution::take() reports long gaps.
inline bool is_idle_gap(const Activity& activity) {
  std::int64_t waiting_ns = 0;
  for (const WaitTally& wait : activity.waits) waiting_ns += wait.time_ns;
  const std::int64_t length_ns = activity.end_ns - activity.begin_ns;
  return activity.kernel_tallies.empty() && length_ns >= kMinIdleGap_ns && waiting_ns >= length_ns / 100 * 99;
}

// Calls use(part, share) for the parts of `interval` outside of the gaps; shares are proportional to their length and
// add up to 1. If gaps cover all of it or none, calls use(interval, 1). `gaps` are sorted and do not overlap.
template <class VisitSpan>
void for_each_span_outside_gaps(std::span<const TimeSpan> gaps, TimeSpan interval, const VisitSpan& visit_span) {
  const auto length_ns = static_cast<double>(interval.end_ns - interval.begin_ns);
  const auto first_gap =
      std::ranges::partition_point(gaps, [&](TimeSpan gap) { return gap.end_ns <= interval.begin_ns; });
  const auto for_each_gap = [&](const auto& visit_gap) {
    for (auto gap = first_gap; gap != gaps.end() && gap->begin_ns < interval.end_ns; ++gap) {
      const TimeSpan clipped_gap{std::max(gap->begin_ns, interval.begin_ns), std::min(gap->end_ns, interval.end_ns)};
      if (static_cast<double>(clipped_gap.end_ns - clipped_gap.begin_ns) >= kMinIdleGapShare * length_ns)
        visit_gap(clipped_gap);
    }
  };
  double outside_ns = length_ns;
  for_each_gap([&](TimeSpan gap) { outside_ns -= static_cast<double>(gap.end_ns - gap.begin_ns); });
  if (outside_ns <= 0 || outside_ns == length_ns) return visit_span(interval, 1.0);
  std::int64_t begin_ns = interval.begin_ns;
  const auto visit_until = [&](std::int64_t end_ns) {
    if (end_ns > begin_ns) visit_span(TimeSpan{begin_ns, end_ns}, static_cast<double>(end_ns - begin_ns) / outside_ns);
  };
  for_each_gap([&](TimeSpan gap) {
    visit_until(gap.begin_ns);
    begin_ns = gap.end_ns;
  });
  visit_until(interval.end_ns);
}

}  // namespace joulemap::attribution
