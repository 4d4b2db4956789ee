// SPDX-License-Identifier: Apache-2.0
//
// Loads one GPU in square waves so that its sensors show how they follow: rests with a context, load on and off in random
// lengths, a long load, rests again, and lets the context go. Loads nothing else and changes no setting. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "calibration/cuda_driver.h"
#include "model/load_phases.h"

namespace joulemap::calibration {

struct WavePlan {
  std::int64_t active_idle_ns = 2 * kNanosecondsPerSecond;
  std::int64_t waves_ns = 10 * kNanosecondsPerSecond;
  std::int64_t shortest_ns = 20 * kNanosecondsPerMillisecond;
  std::int64_t longest_ns = 400 * kNanosecondsPerMillisecond;
  std::int64_t full_ns = 2 * kNanosecondsPerSecond;
  std::int64_t after_ns = 5 * kNanosecondsPerSecond / 2;
  std::int64_t released_ns = 4 * kNanosecondsPerSecond;
  std::uint64_t seed = 0x6A6F756C65;  // of the lengths
};

// Rests until that moment, and does what else is to be done.
using Rest = std::function<void(std::int64_t until_ns)>;

// All but `idle` of the phases. What the driver refuses is an error; the context is given back then, too.
Result<LoadPhases> load_in_square_waves(const CudaDriver& driver, std::string_view uuid, const WavePlan& plan,
                                        const Rest& rest);

}  // namespace joulemap::calibration
