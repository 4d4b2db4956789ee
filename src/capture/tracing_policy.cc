// SPDX-License-Identifier: Apache-2.0
#include "capture/tracing_policy.h"

#include <algorithm>

#include "base/clock.h"

namespace joulemap::capture {
namespace {

// Number of steps after which a program has warmed up and its load is typical.
constexpr std::uint64_t kMinStepsToJudgeLoad = 12;
// Cost to the launching thread of tracing one kernel: its record, its launch callback and its part of the module hooks.
constexpr double kTracingCostPerKernel_s = 10e-6;
constexpr double kMaxTracingSlowdown = 0.01;
// A GPU that is busy for more than this fraction of a step hides the cost of launches.
constexpr double kMinGpuBusyFraction = 0.9;
// Cost to the GPU of recording one kernel: 0.3 us, of kernels of 2 us in a CUDA graph on an H200. Only graphs keep a GPU
// busy with kernels so short that this matters.
constexpr double kRecordingCostPerKernel_s = 0.3e-6;
constexpr double kMaxRecordingSlowdown = 0.02;

// Light mode traces bursts of two steps or more (the first one pays for enabling records) and then leaves many
// untraced. Opening CUPTI, tracing two steps and closing it again takes an extra 0.1 s (cupti/cupti_session.cc). The
// longer a program runs, the less its further steps add, so the untraced intervals grow.
constexpr std::uint64_t kMinTracedStepsInBurst = 2;
// The power history of a GPU covers the last tens of milliseconds: a burst must be longer, to identify the power of
// kernels.
constexpr std::int64_t kMinTracedBurst_ns = 300 * kNanosecondsPerMillisecond;
// Shortest time after warm-up that is traced before automatic mode may become light.
constexpr std::int64_t kMinInitialTracing_ns = 600 * kNanosecondsPerMillisecond;
constexpr std::uint64_t kMinUntracedSteps = 62;
constexpr std::int64_t kMinUntracedInterval_ns = 8 * kNanosecondsPerSecond;
constexpr std::int64_t kMaxUntracedInterval_ns = 60 * kNanosecondsPerSecond;
constexpr std::int64_t kRunTimePerUntracedTime = 3;  // an untraced interval lasts 1/3 of the run time so far

std::int64_t untraced_interval_ns(std::int64_t run_ns) {
  return std::clamp(run_ns / kRunTimePerUntracedTime, kMinUntracedInterval_ns, kMaxUntracedInterval_ns);
}

// Sampled steps: the third, when caches are warm, and then one every 10 s.
constexpr std::uint64_t kFirstSampledStep = 3;
// Warm-up: steps up to this one may include compilation and the search for algorithms (cuDNN).
constexpr std::uint64_t kLastWarmUpStep = 4;
constexpr std::int64_t kStepSamplingPeriod_ns = 10 * kNanosecondsPerSecond;

}  // namespace

bool is_full_tracing_costly(const KernelLog::StepLoadSummary& load) {
  if (load.traced_steps == 0 || load.step_s <= 0) return false;
  // Launching several steps ahead of the GPU takes less time than running them.
  const double run_s = std::max(load.step_s, load.gpu_s);
  if (load.kernels_per_step * kRecordingCostPerKernel_s > kMaxRecordingSlowdown * run_s) return true;
  return load.gpu_s < kMinGpuBusyFraction * load.step_s &&
         load.kernels_per_step * kTracingCostPerKernel_s > kMaxTracingSlowdown * load.step_s;
}

TracingPolicy::StepTracingDecision TracingPolicy::decide_step_tracing(std::int64_t now_ns,
                                                                      const KernelLog::StepLoadSummary& load) {
  if (++step_count_ == 1) first_step_ns_ = now_ns;
  if (step_count_ <= kLastWarmUpStep) last_warm_up_step_ns_ = now_ns;
  const bool has_traced_long_enough = now_ns - last_warm_up_step_ns_ >= kMinInitialTracing_ns;
  if (tracing_mode_ == TracingMode::light) is_light_mode_ = step_count_ > kMinStepsToJudgeLoad;
  // Re-evaluated at every step: a program may begin with a phase that differs from the rest.
  if (tracing_mode_ == TracingMode::automatic && load.traced_steps >= kMinStepsToJudgeLoad && has_traced_long_enough)
    is_light_mode_ = is_full_tracing_costly(load);
  StepTracingDecision step;
  if (is_light_mode_) {
    const bool continues_tracing = traced_steps_in_burst_ > 0 && (traced_steps_in_burst_ < kMinTracedStepsInBurst ||
                                                                  now_ns - burst_begin_ns_ < kMinTracedBurst_ns);
    const bool is_untraced_interval_over =
        now_ns - last_traced_step_ns_ >= untraced_interval_ns(now_ns - first_step_ns_);
    step.is_traced = continues_tracing || (is_untraced_interval_over && steps_since_traced_ >= kMinUntracedSteps);
  }
  // The traced steps before light mode are not a burst: when light mode begins, tracing stops at once.
  if (step.is_traced && traced_steps_in_burst_ == 0)
    burst_begin_ns_ = is_light_mode_ ? now_ns : now_ns - kMinTracedBurst_ns;
  traced_steps_in_burst_ = step.is_traced ? traced_steps_in_burst_ + 1 : 0;
  if (step.is_traced) last_traced_step_ns_ = now_ns;
  steps_since_traced_ = step.is_traced ? 0 : steps_since_traced_ + 1;
  step.is_warm_up = step_count_ <= kLastWarmUpStep;
  step.is_sampled = step.is_traced && step_count_ >= kFirstSampledStep && now_ns >= next_sampled_step_ns_;
  if (step.is_sampled) next_sampled_step_ns_ = now_ns + kStepSamplingPeriod_ns;
  return step;
}

}  // namespace joulemap::capture
