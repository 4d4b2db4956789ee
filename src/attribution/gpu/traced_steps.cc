// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/traced_steps.h"

#include <algorithm>

#include "base/clock.h"
#include "statistics/bootstrap.h"

namespace joulemap::attribution {
namespace {

// A longer run consists mostly of its own steps, so its steps are not compared one by one.
constexpr std::size_t kMaxComparedSteps = 1024;
// Traced steps are slower by up to 50 %, and untraced ones may contain pauses. Steps whose durations differ by more
// than this factor do different work.
constexpr double kMaxStepDurationRatio = 3;
// Enough durations for a median.
constexpr std::size_t kMaxDurationsPerRun = 64;
// With at least this many untraced steps, their own durations show which of them pause. Traced steps may be of another
// kind: an evaluation before the training, a first step that was divided.
constexpr std::size_t kMinUntracedDurations = 8;
// Bounds memory. Further pauses count as work.
constexpr std::size_t kMaxStoredPauses = 4096;
// Code is loaded and memory allocated in the first steps.
constexpr std::uint64_t kWarmUpStepCount = 4;

bool spans_overlap(TimeSpan a, TimeSpan b) { return a.begin_ns < b.end_ns && b.begin_ns < a.end_ns; }

double overlap_s(TimeSpan a, TimeSpan b) {
  return seconds(std::max<std::int64_t>(std::min(a.end_ns, b.end_ns) - std::max(a.begin_ns, b.begin_ns), 0));
}

std::int64_t seconds_to_ns(double duration_s) { return static_cast<std::int64_t>(duration_s * 1e9); }

}  // namespace

// Duration of a usual untraced step of the run.
double TracedSteps::usual_step_s(const TracedRun& run) {
  std::vector<double> durations_s;
  for (const TimeSpan& step : run.first_untraced_steps) durations_s.push_back(seconds(step.end_ns - step.begin_ns));
  if (durations_s.size() < kMinUntracedDurations)
    durations_s.insert(durations_s.end(), run.traced_durations_s.begin(), run.traced_durations_s.end());
  return statistics::median_of(durations_s);
}

void TracedSteps::add_untraced_step(TracedRun& run, TimeSpan step) {
  if (run.first_untraced_steps.size() < kMaxDurationsPerRun) {
    run.first_untraced_steps.push_back(step);
    run.usual_untraced_s = usual_step_s(run);
    return recompute_untraced_work(run);
  }
  add_untraced_work(run, step);
}

// Adds the work of all first untraced steps again: each of them changes their usual duration.
void TracedSteps::recompute_untraced_work(TracedRun& run) {
  run.untraced_count = 0;
  run.untraced_work_s = 0;
  run.untraced_pauses.clear();
  run.extrapolated_end_ns = run.traced_end_ns;
  for (const TimeSpan& step : run.first_untraced_steps) add_untraced_work(run, step);
}

void TracedSteps::add_untraced_work(TracedRun& run, TimeSpan step) {
  const double step_s = seconds(step.end_ns - step.begin_ns);
  const bool has_pause = step_s > kMaxStepDurationRatio * run.usual_untraced_s;
  const double work_s = has_pause ? run.usual_untraced_s : step_s;
  ++run.untraced_count;
  run.untraced_work_s += work_s;
  run.extrapolated_end_ns = std::max(run.extrapolated_end_ns, step.begin_ns + seconds_to_ns(work_s));
  if (has_pause && run.untraced_pauses.size() < kMaxStoredPauses)
    run.untraced_pauses.push_back({step.begin_ns + seconds_to_ns(work_s), step.end_ns});
}

void TracedSteps::add(const StepRecord& step) {
  ++step_count_;
  if (step.is_traced) {
    ++traced_count_;
    if (traced_runs_.empty() || traced_runs_.back().untraced_count > 0)
      traced_runs_.push_back({.begin_ns = step.begin_ns});
    TracedRun& run = traced_runs_.back();
    ++run.traced_count;
    run.traced_end_ns = run.extrapolated_end_ns = step.end_ns;
    if (run.traced_steps.size() < kMaxComparedSteps)
      run.traced_steps.push_back({{step.begin_ns, step.end_ns}, step.kernels, step_count_ <= kWarmUpStepCount});
    if (run.traced_durations_s.size() < kMaxDurationsPerRun)
      run.traced_durations_s.push_back(seconds(step.end_ns - step.begin_ns));
  } else if (!traced_runs_.empty()) {  // else nothing was traced yet that could extrapolate to it
    add_untraced_step(traced_runs_.back(), {step.begin_ns, step.end_ns});
  }
}

bool TracedSteps::is_similar_to_untraced(const TracedRun& run, const Step& step) {
  const double mean_untraced_s = run.untraced_work_s / static_cast<double>(run.untraced_count);
  const double step_s = seconds(step.span.end_ns - step.span.begin_ns);
  return step_s <= kMaxStepDurationRatio * mean_untraced_s && mean_untraced_s <= kMaxStepDurationRatio * step_s;
}

// For a run that extrapolates to untraced steps: marks the steps that resemble them. The first steps of a program only
// where the run has no others. All false: no step resembles them, or the run is too long to compare.
std::vector<bool> TracedSteps::find_typical_steps(const TracedRun& run) {
  std::vector<bool> is_typical(run.traced_steps.size());
  if (run.traced_count > kMaxComparedSteps) return is_typical;
  for (const bool includes_first_steps : {false, true}) {
    for (std::size_t i = 0; i < is_typical.size(); ++i)
      is_typical[i] =
          is_similar_to_untraced(run, run.traced_steps[i]) && (includes_first_steps || !run.traced_steps[i].is_first);
    if (std::ranges::find(is_typical, true) != is_typical.end()) break;
  }
  return is_typical;
}

// Weight of the steps that the run extrapolates from: the typical ones, or all if none is.
double TracedSteps::extrapolation_weight(const TracedRun& run, std::uint64_t typical_count) {
  const auto untraced_count = static_cast<double>(run.untraced_count);
  if (typical_count > 0) return 1 + untraced_count / static_cast<double>(typical_count);
  double traced_s = 0;
  for (const Step& step : run.traced_steps) traced_s += seconds(step.span.end_ns - step.span.begin_ns);
  const bool can_compare_durations = run.traced_count <= kMaxComparedSteps && traced_s > 0;
  return 1 + (can_compare_durations ? run.untraced_work_s / traced_s
                                    : untraced_count / static_cast<double>(run.traced_count));
}

void TracedSteps::add_kernel_weights(const TracedRun& run, TimeSpan traced_span, WeightedKernelSum& weights) {
  const std::vector<bool> is_typical = find_typical_steps(run);
  const auto typical_count = static_cast<std::uint64_t>(std::ranges::count(is_typical, true));
  const double weight = extrapolation_weight(run, typical_count);
  WeightedKernelSum traced_sum;
  for (std::size_t i = 0; i < run.traced_steps.size(); ++i) {
    if (!spans_overlap(run.traced_steps[i].span, traced_span)) continue;
    const auto kernels = static_cast<double>(std::max<std::uint64_t>(run.traced_steps[i].kernel_count, 1));
    traced_sum.kernel_count += kernels;
    traced_sum.weight_sum += kernels * (typical_count == 0 || is_typical[i] ? weight : 1);
  }
  // No compared step overlaps: kernels that ran after the last step ended, or of steps beyond kMaxComparedSteps.
  if (traced_sum.kernel_count <= 0) traced_sum = {weight, 1};
  weights.weight_sum += traced_sum.weight_sum;
  weights.kernel_count += traced_sum.kernel_count;
}

// Time in `span` during which the run did no work although a step went on.
double TracedSteps::paused_s(const TracedRun& run, TimeSpan span) {
  double sum_s = 0;
  for (const TimeSpan& pause : run.untraced_pauses) sum_s += overlap_s(pause, span);
  const double usual_s = usual_step_s(run);
  for (const Step& step : run.traced_steps) {
    if (seconds(step.span.end_ns - step.span.begin_ns) > kMaxStepDurationRatio * usual_s)
      sum_s += overlap_s({step.span.begin_ns + seconds_to_ns(usual_s), step.span.end_ns}, span);
  }
  return sum_s;
}

double TracedSteps::work_s(TimeSpan span) const {
  double work_s = seconds(std::max<std::int64_t>(span.end_ns - span.begin_ns, 0));
  for (const TracedRun& run : traced_runs_) {
    if (run.begin_ns < span.end_ns) work_s -= paused_s(run, span);
  }
  return std::max(work_s, 0.0);
}

double TracedSteps::work_fraction(TimeSpan span, TimeSpan part) const {
  const TimeSpan overlap{std::max(span.begin_ns, part.begin_ns), std::min(span.end_ns, part.end_ns)};
  const double total_work_s = work_s(span);
  return total_work_s > 0 ? work_s(overlap) / total_work_s : 0;
}

Extrapolation TracedSteps::extrapolate(TimeSpan traced_span) const {
  Extrapolation result{traced_span, 1};
  const auto first_run = std::partition_point(traced_runs_.begin(), traced_runs_.end(), [&](const TracedRun& run) {
    return run.extrapolated_end_ns <= traced_span.begin_ns;
  });
  WeightedKernelSum weights;
  TimeSpan span = traced_span;
  for (auto run = first_run; run != traced_runs_.end() && run->begin_ns < traced_span.end_ns; ++run) {
    if (run->untraced_count == 0) {
      // A run without untraced steps has weight 1, also in the mean over all runs of the span.
      weights.weight_sum += static_cast<double>(run->traced_count);
      weights.kernel_count += static_cast<double>(run->traced_count);
      continue;
    }
    add_kernel_weights(*run, traced_span, weights);
    span = {std::min(span.begin_ns, run->begin_ns), std::max(span.end_ns, run->extrapolated_end_ns)};
  }
  if (weights.kernel_count <= 0 || weights.weight_sum <= weights.kernel_count) return result;
  return {span, weights.weight_sum / weights.kernel_count};
}

}  // namespace joulemap::attribution
