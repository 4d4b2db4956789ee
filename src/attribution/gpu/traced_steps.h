// SPDX-License-Identifier: Apache-2.0
//
// TracedSteps: for one process recorded in light mode, the steps that its traced kernels extrapolate to. Light mode
// traces kernels in a few consecutive steps (a run), then leaves many steps untraced. The untraced steps are assumed to
// repeat the run before them. So kernel sums of a run extrapolate to all steps until the next run, and to their time.
//
// Steps that differ from the untraced ones count only once: the first steps of a program, which load code and try out
// algorithms, and steps of another duration. So do kernels outside of steps. Of an untraced step that takes far longer
// than the others of its run (an evaluation or a checkpoint follows the work of the step) only the usual duration
// counts. Steps are added in order of time. Memory grows with the number of runs. Pure; nanoseconds.
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

  std::uint64_t step_count() const { return step_count_; }
  std::uint64_t traced_count() const { return traced_count_; }
  bool is_light_mode() const { return traced_count_ > 0 && traced_count_ < step_count_; }

  // The time span and weight that kernels traced in the span `traced_span` extrapolate to.
  Extrapolation extrapolate(TimeSpan traced_span) const;
  // The share of the work of `span` that was done in `part` of it. Work is spread evenly over the steps; of a step that
  // takes far longer than the others of its run (it compiles, or a checkpoint follows) only the usual duration counts.
  double share_of_work(TimeSpan span, TimeSpan part) const;

 private:
  struct Step {
    TimeSpan span;
    std::uint64_t kernels;
    bool is_first;  // among the first steps of the program
  };
  struct Run {
    std::int64_t begin_ns = 0;
    std::int64_t until_ns = 0;  // end of the work of the last step that the run extrapolates to
    std::uint64_t traced_count = 0;
    std::uint64_t untraced_count = 0;
    double untraced_s = 0;
    std::vector<Step> steps;          // traced steps; only the first ones of a long run
    std::vector<double> durations_s;  // of the first steps of the run, traced or not
    std::vector<TimeSpan> pauses;     // after the usual duration of untraced steps that take far longer
  };
  struct Weights {
    double sum = 0;      // of the weights of kernels
    double kernels = 0;  // number of kernels
  };

  static double usual_duration_s(const Run& run);
  static bool resembles_untraced(const Run& run, const Step& step);  // by its duration
  static std::vector<bool> typical_steps(const Run& run);
  static double pauses_s(const Run& run, TimeSpan span);
  double work_s(TimeSpan span) const;
  static void add_weights(const Run& run, TimeSpan traced_span, Weights& weights);

  std::vector<Run> runs_;
  std::uint64_t step_count_ = 0;
  std::uint64_t traced_count_ = 0;
};

}  // namespace joulemap::attribution
