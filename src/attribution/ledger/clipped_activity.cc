// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/clipped_activity.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attribution/gpu/lost_kernels.h"

namespace joulemap::attribution {
namespace {

double overlap_fraction(const Activity& activity, TimeSpan overlap) {
  if (activity.end_ns <= activity.begin_ns) return overlap.end_ns >= overlap.begin_ns ? 1 : 0;
  if (overlap.end_ns <= overlap.begin_ns) return 0;
  return static_cast<double>(overlap.end_ns - overlap.begin_ns) /
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
  const TimeSpan overlap = overlap_with_span(activity, span);
  Activity scaled_activity;
  scaled_activity.scopes = activity.scopes;
  scaled_activity.classes = activity.classes;
  scaled_activity.queues = activity.queues;
  // Kernels may have run well before the interval of the activity that reports them.
  for (const Kernel& kernel : activity.kernels) {
    if (kernel.end_ns <= span.begin_ns || kernel.start_ns >= span.end_ns) continue;
    Kernel& part = scaled_activity.kernels.emplace_back(kernel);
    part.start_ns = std::max(kernel.start_ns, span.begin_ns);
    part.end_ns = std::min(kernel.end_ns, span.end_ns);
  }
  for (const StepRecord& step : activity.steps) {
    if (step.end_ns > span.begin_ns && step.begin_ns < span.end_ns) scaled_activity.steps.push_back(step);
  }
  scaled_activity.begin_ns = scaled_activity.end_ns =
      std::clamp(activity.begin_ns, span.begin_ns, std::max(span.begin_ns, span.end_ns));
  // A framework profiler's split of a whole run has no interval of its own: it applies to each part.
  if (share > 0 || activity.end_ns <= activity.begin_ns) scaled_activity.shares = activity.shares;
  if (share <= 0) return scaled_activity;
  scaled_activity.begin_ns = overlap.begin_ns;
  scaled_activity.end_ns = overlap.end_ns;
  scaled_activity.scope_tallies = activity.scope_tallies;
  scaled_activity.kernel_tallies = activity.kernel_tallies;
  scaled_activity.waits = activity.waits;
  scale_all_tallies(scaled_activity, share);
  return scaled_activity;
}

}  // namespace

Activity clip_activity(const Activity& activity, TimeSpan span) {
  return make_scaled_activity(activity, span, overlap_fraction(activity, overlap_with_span(activity, span)));
}

std::vector<Activity> clip_activity(const Activity& activity, TimeSpan span, const TracedSteps& steps,
                                    const ScopePaths& scopes) {
  Activity unextrapolated_activity = activity;
  Activity extrapolated_activity;
  unextrapolated_activity.kernel_tallies.clear();
  unextrapolated_activity.waits.clear();
  for (const KernelTally& tally : activity.kernel_tallies) {
    const bool is_never_extrapolated = scopes.is_one_time(tally.scope) || tally.class_id == kLostKernelClassId;
    (is_never_extrapolated ? unextrapolated_activity : extrapolated_activity).kernel_tallies.push_back(tally);
  }
  for (const WaitTally& wait : activity.waits) {
    (scopes.is_one_time(wait.scope) ? unextrapolated_activity : extrapolated_activity).waits.push_back(wait);
  }
  for (StepRecord& step : unextrapolated_activity.steps) step.is_traced = true;
  std::vector<Activity> parts = {clip_activity(unextrapolated_activity, span)};
  if (extrapolated_activity.kernel_tallies.empty() && extrapolated_activity.waits.empty()) return parts;
  const Extrapolation extrapolation = steps.extrapolate({activity.begin_ns, activity.end_ns});
  extrapolated_activity.begin_ns = extrapolation.span.begin_ns;
  extrapolated_activity.end_ns = extrapolation.span.end_ns;
  scale_all_tallies(extrapolated_activity, extrapolation.kernel_weight);
  Activity part = make_scaled_activity(extrapolated_activity, span, steps.work_fraction(extrapolation.span, span));
  if (!part.kernel_tallies.empty() || !part.waits.empty()) parts.push_back(std::move(part));
  return parts;
}

}  // namespace joulemap::attribution
