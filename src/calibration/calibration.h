// SPDX-License-Identifier: Apache-2.0
//
// Measures the behaviour of this machine's sensors by sampling them densely for a few seconds: update period and times
// of each value, read cost, and idle power. Then it loads NVIDIA GPUs with square waves, one after another, to find the
// lag and the averaging of each value. Main thread; the sampler's threads read.
#pragma once

#include <cstdint>
#include <string>

#include "base/progress.h"
#include "calibration/square_waves.h"
#include "model/calibrate_result.h"
#include "sampling/sampler.h"

namespace joulemap::calibration {

struct CalibrationOptions {
  std::int64_t idle_ns = 5 * kNanosecondsPerSecond;  // idle observation time
  bool loads_gpus = true;                            // load GPUs
  std::string cuda_library;                          // CUDA library for the load
  calibration::WavePlan waves = {};
  ProgressCallback on_progress = {};  // share of the planned time
};

// The sampler must not be running; it is stopped afterwards. Diagnostics of the result list what failed.
CalibrateResult calibrate(sampling::Sampler& sampler, const CalibrationOptions& options);

}  // namespace joulemap::calibration
