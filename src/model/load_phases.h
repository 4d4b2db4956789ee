// SPDX-License-Identifier: Apache-2.0
//
// LoadPhases: when `calibrate` loaded a GPU and when it left it idle, on the host clock. Calibration compares the GPU's
// sensor values with these phases. Plain data; CLOCK_MONOTONIC nanoseconds, phases in order of time.
#pragma once

#include <cstdint>
#include <vector>

namespace joulemap {

struct LoadSpan {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  std::int64_t length_ns() const { return end_ns - begin_ns; }
};

struct LoadPhases {
  LoadSpan idle;                // no CUDA context of ours
  LoadSpan active_idle;         // a context; only the kernels that time the load have run in it
  LoadSpan square_waves;        // load on and off for random durations
  std::vector<LoadSpan> loads;  // intervals within `square_waves` in which the load was on, in order of time
  LoadSpan full_load;           // load on continuously
  LoadSpan after_load;          // the context still exists, nothing runs
  LoadSpan after_context;       // the context is destroyed
};

}  // namespace joulemap
