// SPDX-License-Identifier: Apache-2.0
//
// TracedSteps: for one process recorded in light mode, the steps that its traced kernels extrapolate to. Light mode
// traces kernels in a few consecutive steps (a run), then leaves many steps untraced. The untraced steps are assumed to
// repeat the run before them. So kernel sums of a run extrapolate to all steps until the next run, and to their time.
//
// A step that differs from the untraced ones (the first step, which tries out algorithms for a second) counts only
// once; so do kernels outside of steps. Steps are added in order of time. Memory grows with the number of runs. Pure;
// nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attribution/ledger/time_curve.h"
#include "model/activity.h"

namespace joulemap::attribution {

struct Extrapolation {
  TimeSpan span;
  double weight = 1;  // multiple of the traced kernels
};

class TracedSteps {
 public:
  void add(const StepRecord& step);

  std::uint64_t all() const { return all_; }
  std::uint64_t followed() const { return followed_; }
  bool is_light() const { return followed_ > 0 && followed_ < all_; }

  // The time span and weight that kernels traced in the span `told` extrapolate to.
  Extrapolation of(TimeSpan told) const;

 private:
  struct Step {
    TimeSpan span;
    std::uint64_t kernels;
  };
  struct Run {
    std::int64_t begin_ns = 0;
    std::int64_t until_ns = 0;  // end of the last step that the run extrapolates to
    std::uint64_t followed = 0;
    std::uint64_t left_alone = 0;
    double left_alone_s = 0;
    std::vector<Step> steps;  // traced steps; only the first ones of a long run
  };
  struct Weights {
    double sum = 0;
    double kernels = 0;
  };

  static bool is_usual(const Run& run, const Step& step);
  static std::uint64_t usual_steps(const Run& run);
  static void weigh(const Run& run, TimeSpan told, Weights& weights);

  std::vector<Run> runs_;
  std::uint64_t all_ = 0;
  std::uint64_t followed_ = 0;
};

}  // namespace joulemap::attribution
