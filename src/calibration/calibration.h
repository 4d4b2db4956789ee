// SPDX-License-Identifier: Apache-2.0
//
// Finds out how the sensors of this machine behave, by watching them closely for a few seconds: how often each value is
// renewed, when, what a read costs, and what is drawn while nothing runs. NVIDIA GPUs are then loaded in square waves, one
// after another, to see how late each value is and what it averages over. Main thread; the sampler's threads read.
#pragma once

#include <cstdint>
#include <string>

#include "calibration/square_waves.h"
#include "model/calibrate_result.h"
#include "sampling/sampler.h"

namespace joulemap::calibration {

struct CalibrationOptions {
  std::int64_t idle_ns = 5 * kNanosecondsPerSecond;  // to watch while nothing runs
  bool loads = true;                                 // GPUs are loaded
  std::string cuda_library;                          // by this one
  calibration::WavePlan waves = {};
};

// The sampler must not run yet, and does not afterwards. What could not be done is in the result's diagnostics.
CalibrateResult calibrate(sampling::Sampler& sampler, const CalibrationOptions& options);

}  // namespace joulemap::calibration
