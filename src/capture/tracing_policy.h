// SPDX-License-Identifier: Apache-2.0
//
// TracingPolicy: decides for each step whether it is traced and sampled. Pure; the capture calls it when a step begins.
//
// Kernel records and module hooks cost some microseconds a kernel. A program that keeps its GPU busy hides that cost. A
// launch-bound program, whose GPU waits for the next launch, slows down by as much. Light mode therefore leaves most
// steps untraced. Marks and durations of untraced steps are still recorded; the traced steps extrapolate to them.
//
// Some traced steps are sampled: their operations are recorded, too.
#pragma once

#include <cstdint>

#include "capture/kernel_log.h"

namespace joulemap::capture {

enum class TracingMode : std::uint8_t { automatic, full, light };

class TracingPolicy {
 public:
  explicit TracingPolicy(TracingMode tracing_mode) : tracing_mode_(tracing_mode) {}

  struct StepTracingDecision {
    bool is_traced = true;    // modules and kernels are traced
    bool is_sampled = false;  // operations are recorded, too
    bool is_warm_up = false;  // a warm-up step: may contain compilation and the search for algorithms
  };
  // The decision for the step that begins at now_ns. `load`: of the last traced steps.
  StepTracingDecision decide_step_tracing(std::int64_t now_ns, const KernelLog::StepLoadSummary& load);

  bool is_light_mode() const { return is_light_mode_; }

 private:
  const TracingMode tracing_mode_;
  bool is_light_mode_ = false;
  std::uint64_t step_count_ = 0;
  std::uint64_t steps_since_traced_ = 0;
  std::uint64_t traced_steps_in_burst_ = 0;
  std::int64_t first_step_ns_ = 0;
  std::int64_t last_warm_up_step_ns_ = 0;  // start of the last warm-up step
  std::int64_t burst_begin_ns_ = 0;        // start of the current burst of traced steps
  std::int64_t last_traced_step_ns_ = 0;   // start of the last traced step
  std::int64_t next_sampled_step_ns_ = 0;
};

// Whether tracing every step would slow the program down by more than 1 %. False without traced steps.
bool is_full_tracing_costly(const KernelLog::StepLoadSummary& load);

}  // namespace joulemap::capture
