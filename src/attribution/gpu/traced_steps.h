// SPDX-License-Identifier: Apache-2.0
//
// TracedSteps: for one process recorded in light mode, the steps that its traced kernels extrapolate to. Light mode
// traces kernels in a few consecutive steps (a run), then leaves many steps untraced. The untraced steps are assumed to
// repeat the run before them. So kernel sums of a run extrapolate to all steps until the next run, and to their time.
//
// Steps that differ from the untraced ones count only once: the first steps of a program, which load code and try out
// algorithms, and steps of another duration. So do kernels outside of steps. If no traced step resembles the untraced
// ones, kernels are extrapolated in proportion to the duration of steps instead of their number. Of an untraced step
// that takes far longer than the other untraced ones of its run (an evaluation or a checkpoint follows the work of the
// step) only the usual duration counts. Steps are added in order of time. Memory grows with the number of runs. Pure;
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
  double kernel_weight = 1;  // multiple of the traced kernels
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
  double work_fraction(TimeSpan span, TimeSpan part) const;

 private:
  struct Step {
    TimeSpan span;
    std::uint64_t kernel_count;
    bool is_first;  // among the first steps of the program
  };
  struct TracedRun {
    std::int64_t begin_ns = 0;
    std::int64_t extrapolated_end_ns = 0;  // end of the work of the last step that the run extrapolates to
    std::int64_t traced_end_ns = 0;
    std::uint64_t traced_count = 0;
    std::uint64_t untraced_count = 0;
    double usual_untraced_s = 0;  // duration of a usual untraced step
    double untraced_work_s = 0;
    std::vector<Step> traced_steps;              // traced steps; only the first ones of a long run
    std::vector<double> traced_durations_s;      // of its first traced steps
    std::vector<TimeSpan> first_untraced_steps;  // these give the usual duration; later ones are compared with it
    std::vector<TimeSpan> untraced_pauses;       // after the usual duration of untraced steps that take far longer
  };
  struct WeightedKernelSum {
    double weight_sum = 0;  // of the weights of kernels
    double kernel_count = 0;
  };

  static double usual_step_s(const TracedRun& run);
  static void add_untraced_step(TracedRun& run, TimeSpan step);
  static void recompute_untraced_work(TracedRun& run);
  static void add_untraced_work(TracedRun& run, TimeSpan step);
  static bool is_similar_to_untraced(const TracedRun& run, const Step& step);  // by its duration
  static std::vector<bool> find_typical_steps(const TracedRun& run);
  static double extrapolation_weight(const TracedRun& run, std::uint64_t typical_count);
  static double paused_s(const TracedRun& run, TimeSpan span);
  double work_s(TimeSpan span) const;
  static void add_kernel_weights(const TracedRun& run, TimeSpan traced_span, WeightedKernelSum& weights);

  std::vector<TracedRun> traced_runs_;
  std::uint64_t step_count_ = 0;
  std::uint64_t traced_count_ = 0;
};

}  // namespace joulemap::attribution
