// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/clipped_activity.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attribution/gpu/lost_kernels.h"

namespace joulemap::attribution {
namespace {

double overlap_fraction(const Activity& activity, TimeSpan inside) {
  if (activity.end_ns <= activity.begin_ns) return inside.end_ns >= inside.begin_ns ? 1 : 0;
  if (inside.end_ns <= inside.begin_ns) return 0;
  return static_cast<double>(inside.end_ns - inside.begin_ns) /
         (static_cast<double>(activity.end_ns) - static_cast<double>(activity.begin_ns));
}

std::uint64_t scale_and_round(std::uint64_t count, double share) {
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(count) * share));
}
std::int64_t scale_and_round(std::int64_t time_ns, double share) {
  return std::llround(static_cast<double>(time_ns) * share);
}

void scale_all_tallies(Activity& activity, double share) {
  for (ScopeTally& tally : activity.scope_tallies) {
    tally.count = scale_and_round(tally.count, share);
    tally.sampled_count = scale_and_round(tally.sampled_count, share);
    tally.wall_ns = scale_and_round(tally.wall_ns, share);
    tally.cpu_ns = scale_and_round(tally.cpu_ns, share);
    tally.helper_threads_cpu_ns = scale_and_round(tally.helper_threads_cpu_ns, share);
  }
  for (KernelTally& tally : activity.kernel_tallies) {
    tally.count = scale_and_round(tally.count, share);
    tally.time_ns = scale_and_round(tally.time_ns, share);
  }
  for (WaitTally& wait : activity.waits) {
    wait.count = scale_and_round(wait.count, share);
    wait.time_ns = scale_and_round(wait.time_ns, share);
  }
}

}  // namespace

bool is_within_span(const Activity& activity, TimeSpan span) {
  return activity.begin_ns >= span.begin_ns && activity.end_ns <= span.end_ns;
}

namespace {

TimeSpan overlap_with_span(const Activity& activity, TimeSpan span) {
  return {std::max(activity.begin_ns, span.begin_ns), std::min(activity.end_ns, span.end_ns)};
}

// `share`: of the sums of the activity, in the span.
Activity make_scaled_activity(const Activity& activity, TimeSpan span, double share) {
  const TimeSpan inside = overlap_with_span(activity, span);
  Activity rest;
  rest.scopes = activity.scopes;
  rest.classes = activity.classes;
  rest.queues = activity.queues;
  // Kernels may have run well before the interval of the activity that reports them.
  for (const Kernel& kernel : activity.kernels) {
    if (kernel.end_ns <= span.begin_ns || kernel.start_ns >= span.end_ns) continue;
    Kernel& part = rest.kernels.emplace_back(kernel);
    part.start_ns = std::max(kernel.start_ns, span.begin_ns);
    part.end_ns = std::min(kernel.end_ns, span.end_ns);
  }
  for (const StepRecord& step : activity.steps) {
    if (step.end_ns > span.begin_ns && step.begin_ns < span.end_ns) rest.steps.push_back(step);
  }
  rest.begin_ns = rest.end_ns = std::clamp(activity.begin_ns, span.begin_ns, std::max(span.begin_ns, span.end_ns));
  // A framework profiler's split of a whole run has no interval of its own: it applies to each part.
  if (share > 0 || activity.end_ns <= activity.begin_ns) rest.shares = activity.shares;
  if (share <= 0) return rest;
  rest.begin_ns = inside.begin_ns;
  rest.end_ns = inside.end_ns;
  rest.scope_tallies = activity.scope_tallies;
  rest.kernel_tallies = activity.kernel_tallies;
  rest.waits = activity.waits;
  scale_all_tallies(rest, share);
  return rest;
}

}  // namespace

Activity clip_activity(const Activity& activity, TimeSpan span) {
  return make_scaled_activity(activity, span, overlap_fraction(activity, overlap_with_span(activity, span)));
}

std::vector<Activity> clip_activity(const Activity& activity, TimeSpan span, const TracedSteps& steps,
                                    const ScopePaths& scopes) {
  Activity traced = activity;
  Activity extrapolated;
  traced.kernel_tallies.clear();
  traced.waits.clear();
  for (const KernelTally& tally : activity.kernel_tallies) {
    const bool is_never_extrapolated = scopes.is_one_time(tally.scope) || tally.class_id == kLostKernelClassId;
    (is_never_extrapolated ? traced : extrapolated).kernel_tallies.push_back(tally);
  }
  for (const WaitTally& wait : activity.waits) {
    (scopes.is_one_time(wait.scope) ? traced : extrapolated).waits.push_back(wait);
  }
  for (StepRecord& step : traced.steps) step.is_traced = true;
  std::vector<Activity> parts = {clip_activity(traced, span)};
  if (extrapolated.kernel_tallies.empty() && extrapolated.waits.empty()) return parts;
  const Extrapolation all = steps.extrapolate({activity.begin_ns, activity.end_ns});
  extrapolated.begin_ns = all.span.begin_ns;
  extrapolated.end_ns = all.span.end_ns;
  scale_all_tallies(extrapolated, all.kernel_weight);
  Activity part = make_scaled_activity(extrapolated, span, steps.work_fraction(all.span, span));
  if (!part.kernel_tallies.empty() || !part.waits.empty()) parts.push_back(std::move(part));
  return parts;
}

}  // namespace joulemap::attribution
