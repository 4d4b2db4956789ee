// SPDX-License-Identifier: Apache-2.0
#include "capture/tracing_policy.h"

#include <algorithm>

#include "base/clock.h"

namespace joulemap::capture {
namespace {

// Number of steps after which a program has warmed up and its load is typical.
constexpr std::uint64_t kStepsToJudge = 12;
// Cost to the launching thread of tracing one kernel: its record, its launch callback and its part of the module hooks.
constexpr double kCostPerKernel_s = 10e-6;
constexpr double kMaxSlowdown = 0.01;
// A GPU that is busy for more than this fraction of a step hides the cost of launches.
constexpr double kBusyShare = 0.9;

// Light mode traces bursts of two steps or more (the first one pays for enabling records) and then leaves many
// untraced. Opening CUPTI, tracing two steps and closing it again takes an extra 0.1 s (cupti/cupti_session.cc). The
// longer a program runs, the less its further steps add, so the untraced intervals grow.
constexpr std::uint64_t kConsecutiveTraced = 2;
// The power history of a GPU covers the last tens of milliseconds: a burst must be longer, to identify the power of
// kernels.
constexpr std::int64_t kMinBurst_ns = 300 * kNanosecondsPerMillisecond;
// Shortest time after warm-up that is traced before automatic mode may become light.
constexpr std::int64_t kMinTracedAtFirst_ns = 600 * kNanosecondsPerMillisecond;
constexpr std::uint64_t kConsecutiveUntraced = 62;
constexpr std::int64_t kMinUntraced_ns = 8 * kNanosecondsPerSecond;
constexpr std::int64_t kMaxUntraced_ns = 60 * kNanosecondsPerSecond;
constexpr std::int64_t kUntracedDivisor = 3;  // an untraced interval lasts 1/3 of the run time so far

std::int64_t untraced_ns(std::int64_t run_ns) {
  return std::clamp(run_ns / kUntracedDivisor, kMinUntraced_ns, kMaxUntraced_ns);
}

// Sampled steps: the third, when caches are warm, and then one every 10 s.
constexpr std::uint64_t kFirstSampled = 3;
// Warm-up: steps up to this one may include compilation and the search for algorithms (cuDNN).
constexpr std::uint64_t kFirstSteady = 4;
constexpr std::int64_t kSamplePeriod_ns = 10 * kNanosecondsPerSecond;

}  // namespace

bool is_launch_bound(const KernelLog::Load& load) {
  if (load.steps == 0 || load.step_s <= 0) return false;
  return load.gpu_s < kBusyShare * load.step_s && load.kernels_per_step * kCostPerKernel_s > kMaxSlowdown * load.step_s;
}

TracingPolicy::Decision TracingPolicy::next(std::int64_t now_ns, const KernelLog::Load& load) {
  if (++step_count_ == 1) began_ns_ = now_ns;
  if (step_count_ <= kFirstSteady) steady_ns_ = now_ns;
  const bool has_enough = now_ns - steady_ns_ >= kMinTracedAtFirst_ns;
  if (tracing_mode_ == TracingMode::light) is_light_ = step_count_ > kStepsToJudge;
  // Re-evaluated at every step: a program may begin with a phase that differs from the rest.
  if (tracing_mode_ == TracingMode::automatic && load.steps >= kStepsToJudge && has_enough)
    is_light_ = is_launch_bound(load);
  Decision step;
  if (is_light_) {
    const bool continues_tracing =
        consecutive_traced_ > 0 && (consecutive_traced_ < kConsecutiveTraced || now_ns - burst_ns_ < kMinBurst_ns);
    const bool is_long_ago = now_ns - last_traced_ns_ >= untraced_ns(now_ns - began_ns_);
    step.traced = continues_tracing || (is_long_ago && steps_since_traced_ >= kConsecutiveUntraced);
  }
  // The traced steps before light mode are not a burst: when light mode begins, tracing stops at once.
  if (step.traced && consecutive_traced_ == 0) burst_ns_ = is_light_ ? now_ns : now_ns - kMinBurst_ns;
  consecutive_traced_ = step.traced ? consecutive_traced_ + 1 : 0;
  if (step.traced) last_traced_ns_ = now_ns;
  steps_since_traced_ = step.traced ? 0 : steps_since_traced_ + 1;
  step.is_first = step_count_ <= kFirstSteady;
  step.sampled = step.traced && step_count_ >= kFirstSampled && now_ns >= next_sample_ns_;
  if (step.sampled) next_sample_ns_ = now_ns + kSamplePeriod_ns;
  return step;
}

}  // namespace joulemap::capture
