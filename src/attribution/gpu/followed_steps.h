// SPDX-License-Identifier: Apache-2.0
//
// FollowedSteps: of one process in light mode, which steps its kernels stand for. Kernels are told in a few steps in a row
// (a run), then for many steps not at all: those are taken to be like the run before them. So sums of kernels of a run
// stand for all steps until the next run, and for their time.
//
// A step that is like none of those (the first one, which tries out algorithms for a second) stands for itself alone; so do
// kernels outside of steps. Steps are added in order of time. Memory grows with the number of runs. Pure; nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attribution/ledger/time_curve.h"
#include "model/activity.h"

namespace joulemap::attribution {

struct StandsFor {
  TimeSpan span;
  double weight = 1;  // as many as these
};

class FollowedSteps {
 public:
  void add(const StepRecord& step);

  std::uint64_t all() const { return all_; }
  std::uint64_t followed() const { return followed_; }
  bool is_light() const { return followed_ > 0 && followed_ < all_; }

  // What kernels that were told as of that stretch of time stand for.
  StandsFor of(TimeSpan told) const;

 private:
  struct Step {
    TimeSpan span;
    std::uint64_t kernels;
  };
  struct Run {
    std::int64_t begin_ns = 0;
    std::int64_t until_ns = 0;  // the last step that is like it has ended
    std::uint64_t followed = 0;
    std::uint64_t left_alone = 0;
    double left_alone_s = 0;
    std::vector<Step> steps;  // those that were followed; of a long run the first ones
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
