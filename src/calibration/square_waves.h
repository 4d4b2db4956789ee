// SPDX-License-Identifier: Apache-2.0
//
// Loads one GPU with square waves to measure the response of its sensors: idle with a CUDA context, load on and off for
// random durations, a long load, idle again, and idle after the context is destroyed. It loads nothing else and changes
// no setting. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "calibration/cuda_driver.h"
#include "model/load_phases.h"

namespace joulemap::calibration {

struct SquareWavePlan {
  std::int64_t active_idle_ns = 2 * kNanosecondsPerSecond;
  std::int64_t total_waves_ns = 10 * kNanosecondsPerSecond;
  std::int64_t min_duration_ns = 20 * kNanosecondsPerMillisecond;
  std::int64_t max_duration_ns = 400 * kNanosecondsPerMillisecond;
  std::int64_t full_load_ns = 2 * kNanosecondsPerSecond;
  std::int64_t idle_after_load_ns = 5 * kNanosecondsPerSecond / 2;
  std::int64_t idle_after_release_ns = 4 * kNanosecondsPerSecond;
  std::uint64_t seed = 0x6A6F756C65;  // seed of the random durations
};

// Called instead of sleeping: returns at `until_ns` of CLOCK_MONOTONIC, and meanwhile fetches sensor values.
using IdleUntilCallback = std::function<void(std::int64_t until_ns)>;

// Returns all phases except `idle`, which the caller observes before. Fails if the CUDA driver fails; the context is
// destroyed then, too.
Result<LoadPhases> run_square_waves(const CudaDriver& driver, std::string_view uuid, const SquareWavePlan& plan,
                                    const IdleUntilCallback& idle_until);

}  // namespace joulemap::calibration
