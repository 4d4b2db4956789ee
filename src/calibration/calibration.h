// SPDX-License-Identifier: Apache-2.0
//
// Measures the behaviour of this machine's sensors by sampling them densely for a few seconds: update period and times
// of each value, read cost, and idle power. Then it loads NVIDIA GPUs with square waves, one after another, to find the
// lag and the averaging of each value. Runs on the main thread; the sampler's threads read the sensors.
#pragma once

#include <cstdint>
#include <string>

#include "base/progress.h"
#include "calibration/square_waves.h"
#include "model/calibrate_result.h"
#include "sampling/sampler.h"

namespace joulemap::calibration {

struct CalibrationOptions {
  std::int64_t idle_duration_ns = 5 * kNanosecondsPerSecond;  // how long sensors are read before GPUs are loaded
  bool is_gpu_load_enabled = true;
  std::string cuda_library;  // path of libcuda for the load; empty: none
  calibration::SquareWavePlan square_wave_plan = {};
  ProgressCallback on_progress = {};  // gets the share of the planned time
};

// The sampler must not be running; it is stopped afterwards. Diagnostics of the result list what failed.
CalibrateResult calibrate(sampling::Sampler& sampler, const CalibrationOptions& options);

}  // namespace joulemap::calibration
