// SPDX-License-Identifier: Apache-2.0
//
// ListeningPlan: how closely each step is watched. Pure; the capture asks it when a step begins.
//
// Kernel records and module hooks cost some microseconds a kernel. A program that keeps its GPU busy hides that; one that is
// launch bound, whose GPU waits for the next launch, is slowed by as much. Then most steps are left alone (light mode) and
// told from the few that were watched: by their marks, their duration, their shape.
//
// Now and then a step is sampled: operations and functions are told, too.
#pragma once

#include <cstdint>

#include "capture/kernel_log.h"

namespace joulemap::capture {

enum class Closeness : std::uint8_t { automatic, full, light };

class ListeningPlan {
 public:
  explicit ListeningPlan(Closeness closeness) : closeness_(closeness) {}

  struct Step {
    bool followed = true;  // modules and kernels are told
    bool sampled = false;  // operations and functions, too
  };
  // `load`: of the steps that were followed so far.
  Step next(std::int64_t now_ns, const KernelLog::Load& load);

  bool is_light() const { return light_; }

 private:
  const Closeness closeness_;
  bool light_ = false;
  std::uint64_t steps_ = 0;
  std::uint64_t since_followed_ = 0;
  std::uint64_t followed_in_a_row_ = 0;
  std::int64_t began_ns_ = 0;
  std::int64_t followed_ns_ = 0;  // when a step was last
  std::int64_t next_sample_ns_ = 0;
};

// Whether following every step would slow the program by more than a percent.
bool is_launch_bound(const KernelLog::Load& load);

}  // namespace joulemap::capture
