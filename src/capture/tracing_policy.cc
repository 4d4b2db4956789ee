// SPDX-License-Identifier: Apache-2.0
#include "capture/tracing_policy.h"

#include <algorithm>

#include "base/clock.h"

namespace joulemap::capture {
namespace {

// Number of steps after which a program has warmed up and its load is typical.
constexpr std::uint64_t kStepsToJudge = 12;
// Cost to the launching thread of one kernel's record, launch callback and part of the hooks.
constexpr double kCostPerKernel_s = 10e-6;
constexpr double kBearable = 0.01;
// A GPU that is busy for more than this fraction of a step hides the cost of launches.
constexpr double kBusy = 0.9;

// Light mode traces two steps in a row (the first one pays for enabling records) and then leaves many untraced. Opening
// CUPTI, tracing two steps and closing it again takes an extra 0.1 s (cupti/cupti_rest.cc). The longer a program runs,
// the less its further steps add.
constexpr std::uint64_t kConsecutiveTraced = 2;
constexpr std::uint64_t kUnfollowedInARow = 62;
constexpr std::int64_t kLeastUnfollowed_ns = 8 * kNanosecondsPerSecond;
constexpr std::int64_t kMostUnfollowed_ns = 60 * kNanosecondsPerSecond;
constexpr std::int64_t kUnfollowedShare = 3;  // fraction 1/3 of the run time so far

std::int64_t unfollowed_ns(std::int64_t run_ns) {
  return std::clamp(run_ns / kUnfollowedShare, kLeastUnfollowed_ns, kMostUnfollowed_ns);
}

// Sampled steps: the third, when caches are warm, and then one every 10 s.
constexpr std::uint64_t kFirstSampled = 3;
constexpr std::int64_t kSamplePeriod_ns = 10 * kNanosecondsPerSecond;

}  // namespace

bool is_launch_bound(const KernelLog::Load& load) {
  if (load.steps == 0 || load.step_s <= 0) return false;
  return load.gpu_s < kBusy * load.step_s && load.kernels_per_step * kCostPerKernel_s > kBearable * load.step_s;
}

TracingPolicy::Step TracingPolicy::next(std::int64_t now_ns, const KernelLog::Load& load) {
  if (++steps_ == 1) began_ns_ = now_ns;
  if (closeness_ == TracingMode::light) light_ = steps_ > kStepsToJudge;
  // Re-evaluated at every step: a program may begin with a phase that differs from the rest.
  if (closeness_ == TracingMode::automatic && load.steps >= kStepsToJudge) light_ = is_launch_bound(load);
  Step step;
  if (light_) {
    const bool goes_on = consecutive_traced_ > 0 && consecutive_traced_ < kConsecutiveTraced;
    const bool is_long_ago = now_ns - traced_ns_ >= unfollowed_ns(now_ns - began_ns_);
    step.followed = goes_on || (is_long_ago && since_traced_ >= kUnfollowedInARow);
  }
  consecutive_traced_ = step.followed ? consecutive_traced_ + 1 : 0;
  if (step.followed && light_ && consecutive_traced_ > kConsecutiveTraced) consecutive_traced_ = 1;
  if (step.followed) traced_ns_ = now_ns;
  since_traced_ = step.followed ? 0 : since_traced_ + 1;
  step.sampled = step.followed && steps_ >= kFirstSampled && now_ns >= next_sample_ns_;
  if (step.sampled) next_sample_ns_ = now_ns + kSamplePeriod_ns;
  return step;
}

}  // namespace joulemap::capture
