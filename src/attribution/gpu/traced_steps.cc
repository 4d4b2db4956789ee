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
constexpr double kMaxDurationRatio = 3;
// Enough durations for a median.
constexpr std::size_t kMaxDurations = 64;
// Bounds memory. Further pauses count as work.
constexpr std::size_t kMaxPauses = 4096;
// Code is loaded and memory allocated in the first steps.
constexpr std::uint64_t kFirstSteps = 4;

bool overlap(TimeSpan a, TimeSpan b) { return a.begin_ns < b.end_ns && b.begin_ns < a.end_ns; }

double overlap_s(TimeSpan a, TimeSpan b) {
  return seconds(std::max<std::int64_t>(std::min(a.end_ns, b.end_ns) - std::max(a.begin_ns, b.begin_ns), 0));
}

std::int64_t nanoseconds(double duration_s) { return static_cast<std::int64_t>(duration_s * 1e9); }

}  // namespace

double TracedSteps::usual_duration_s(const Run& run) { return statistics::median_of(run.durations_s); }

void TracedSteps::add(const StepRecord& step) {
  ++step_count_;
  const double step_s = seconds(step.end_ns - step.begin_ns);
  if (step.traced) {
    ++traced_count_;
    if (runs_.empty() || runs_.back().untraced_count > 0) runs_.push_back({.begin_ns = step.begin_ns});
    Run& run = runs_.back();
    ++run.traced_count;
    run.until_ns = step.end_ns;
    if (run.steps.size() < kMaxComparedSteps)
      run.steps.push_back({{step.begin_ns, step.end_ns}, step.kernels, step_count_ <= kFirstSteps});
  } else if (!runs_.empty()) {
    Run& run = runs_.back();
    const double usual_s = usual_duration_s(run);
    const bool has_pause = step_s > kMaxDurationRatio * usual_s;
    const double work_s = has_pause ? usual_s : step_s;
    ++run.untraced_count;
    run.untraced_s += work_s;
    run.until_ns = std::max(run.until_ns, step.begin_ns + nanoseconds(work_s));
    if (has_pause && run.pauses.size() < kMaxPauses)
      run.pauses.push_back({step.begin_ns + nanoseconds(work_s), step.end_ns});
  } else {
    return;  // nothing was traced yet that could extrapolate to it
  }
  std::vector<double>& durations_s = runs_.back().durations_s;
  if (durations_s.size() < kMaxDurations) durations_s.push_back(step_s);
}

bool TracedSteps::resembles_untraced(const Run& run, const Step& step) {
  const double typical_s = run.untraced_s / static_cast<double>(run.untraced_count);
  const double step_s = seconds(step.span.end_ns - step.span.begin_ns);
  return step_s <= kMaxDurationRatio * typical_s && typical_s <= kMaxDurationRatio * step_s;
}

// For a run that extrapolates to untraced steps: marks the steps that resemble them. The first steps of a program only
// where the run has no others. All false: no step resembles them, or the run is too long to compare.
std::vector<bool> TracedSteps::typical_steps(const Run& run) {
  std::vector<bool> typical(run.steps.size());
  if (run.traced_count > kMaxComparedSteps) return typical;
  for (const bool with_first : {false, true}) {
    for (std::size_t i = 0; i < typical.size(); ++i)
      typical[i] = resembles_untraced(run, run.steps[i]) && (with_first || !run.steps[i].is_first);
    if (std::ranges::find(typical, true) != typical.end()) break;
  }
  return typical;
}

void TracedSteps::add_weights(const Run& run, TimeSpan traced_span, Weights& weights) {
  const std::vector<bool> typical = typical_steps(run);
  const auto typical_count = static_cast<std::uint64_t>(std::ranges::count(typical, true));
  const auto extrapolated_from = static_cast<double>(typical_count > 0 ? typical_count : run.traced_count);
  const double weight = (extrapolated_from + static_cast<double>(run.untraced_count)) / extrapolated_from;
  Weights of_steps;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    if (!overlap(run.steps[i].span, traced_span)) continue;
    const auto kernels = static_cast<double>(std::max<std::uint64_t>(run.steps[i].kernels, 1));
    of_steps.kernels += kernels;
    of_steps.sum += kernels * (typical_count == 0 || typical[i] ? weight : 1);
  }
  // No compared step overlaps: kernels that ran after the last step ended, or of steps beyond kMaxComparedSteps.
  if (of_steps.kernels <= 0) of_steps = {weight, 1};
  weights.sum += of_steps.sum;
  weights.kernels += of_steps.kernels;
}

// Time in `span` during which the run did no work although a step went on.
double TracedSteps::pauses_s(const Run& run, TimeSpan span) {
  double sum_s = 0;
  for (const TimeSpan& pause : run.pauses) sum_s += overlap_s(pause, span);
  const double usual_s = usual_duration_s(run);
  for (const Step& step : run.steps) {
    if (seconds(step.span.end_ns - step.span.begin_ns) > kMaxDurationRatio * usual_s)
      sum_s += overlap_s({step.span.begin_ns + nanoseconds(usual_s), step.span.end_ns}, span);
  }
  return sum_s;
}

double TracedSteps::work_s(TimeSpan span) const {
  double work_s = seconds(std::max<std::int64_t>(span.end_ns - span.begin_ns, 0));
  for (const Run& run : runs_) {
    if (run.begin_ns < span.end_ns) work_s -= pauses_s(run, span);
  }
  return std::max(work_s, 0.0);
}

double TracedSteps::share_of_work(TimeSpan span, TimeSpan part) const {
  const TimeSpan inside{std::max(span.begin_ns, part.begin_ns), std::min(span.end_ns, part.end_ns)};
  const double all_s = work_s(span);
  return all_s > 0 ? work_s(inside) / all_s : 0;
}

Extrapolation TracedSteps::extrapolate(TimeSpan traced_span) const {
  Extrapolation result{traced_span, 1};
  const auto first = std::partition_point(runs_.begin(), runs_.end(),
                                          [&](const Run& run) { return run.until_ns <= traced_span.begin_ns; });
  Weights weights;
  TimeSpan span = traced_span;
  for (auto run = first; run != runs_.end() && run->begin_ns < traced_span.end_ns; ++run) {
    if (run->untraced_count == 0) {
      // A run without untraced steps has weight 1, also in the mean over all runs of the span.
      weights.sum += static_cast<double>(run->traced_count);
      weights.kernels += static_cast<double>(run->traced_count);
      continue;
    }
    add_weights(*run, traced_span, weights);
    span = {std::min(span.begin_ns, run->begin_ns), std::max(span.end_ns, run->until_ns)};
  }
  if (weights.kernels <= 0 || weights.sum <= weights.kernels) return result;
  return {span, weights.sum / weights.kernels};
}

}  // namespace joulemap::attribution
