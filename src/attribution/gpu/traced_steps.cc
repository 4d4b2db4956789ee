// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/traced_steps.h"

#include <algorithm>

#include "base/clock.h"

namespace joulemap::attribution {
namespace {

// A longer run consists mostly of its own steps, so its steps are not compared one by one.
constexpr std::size_t kLookedAt = 64;
// Traced steps are slower by up to a half, and others may pause. Beyond this ratio a step is of another kind.
constexpr double kAlike = 3;

bool overlap(TimeSpan a, TimeSpan b) { return a.begin_ns < b.end_ns && b.begin_ns < a.end_ns; }

}  // namespace

void TracedSteps::add(const StepRecord& step) {
  ++all_;
  if (step.listened) {
    ++followed_;
    if (runs_.empty() || runs_.back().left_alone > 0) runs_.push_back({.begin_ns = step.begin_ns});
    Run& run = runs_.back();
    ++run.followed;
    run.until_ns = step.end_ns;
    if (run.steps.size() < kLookedAt) run.steps.push_back({{step.begin_ns, step.end_ns}, step.kernels});
  } else if (!runs_.empty()) {
    Run& run = runs_.back();
    ++run.left_alone;
    run.left_alone_s += seconds(step.end_ns - step.begin_ns);
    run.until_ns = std::max(run.until_ns, step.end_ns);
  }
}

bool TracedSteps::is_usual(const Run& run, const Step& step) {
  const double usual_s = run.left_alone_s / static_cast<double>(run.left_alone);
  const double step_s = seconds(step.span.end_ns - step.span.begin_ns);
  return step_s <= kAlike * usual_s && usual_s <= kAlike * step_s;
}

// For a run that extrapolates to untraced steps. 0: no step resembles them, or the run is too long to compare; then all
// traced steps count.
std::uint64_t TracedSteps::usual_steps(const Run& run) {
  if (run.followed > kLookedAt) return 0;
  const auto usual = std::count_if(run.steps.begin(), run.steps.end(), [&](const Step& s) { return is_usual(run, s); });
  return static_cast<std::uint64_t>(usual);
}

void TracedSteps::weigh(const Run& run, TimeSpan told, Weights& weights) {
  const std::uint64_t usual = usual_steps(run);
  const auto standing = static_cast<double>(usual > 0 ? usual : run.followed);
  const double weight = (standing + static_cast<double>(run.left_alone)) / standing;
  Weights of_steps;
  for (const Step& step : run.steps) {
    if (!overlap(step.span, told)) continue;
    const auto kernels = static_cast<double>(std::max<std::uint64_t>(step.kernels, 1));
    of_steps.kernels += kernels;
    of_steps.sum += kernels * (usual == 0 || is_usual(run, step) ? weight : 1);
  }
  // Kernels that ran after the last step ended, or of steps that were not compared.
  if (of_steps.kernels <= 0) of_steps = {weight, 1};
  weights.sum += of_steps.sum;
  weights.kernels += of_steps.kernels;
}

Extrapolation TracedSteps::of(TimeSpan told) const {
  Extrapolation result{told, 1};
  const auto first =
      std::partition_point(runs_.begin(), runs_.end(), [&](const Run& run) { return run.until_ns <= told.begin_ns; });
  Weights weights;
  TimeSpan span = told;
  for (auto run = first; run != runs_.end() && run->begin_ns < told.end_ns; ++run) {
    if (run->left_alone == 0) {
      // Counts among the other runs in the span; alone it extrapolates only to itself.
      weights.sum += static_cast<double>(run->followed);
      weights.kernels += static_cast<double>(run->followed);
      continue;
    }
    weigh(*run, told, weights);
    span = {std::min(span.begin_ns, run->begin_ns), std::max(span.end_ns, run->until_ns)};
  }
  if (weights.kernels <= 0 || weights.sum <= weights.kernels) return result;
  return {span, weights.sum / weights.kernels};
}

}  // namespace joulemap::attribution
