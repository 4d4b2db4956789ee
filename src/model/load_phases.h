// SPDX-License-Identifier: Apache-2.0
//
// LoadPhases: when `calibrate` loaded a GPU and when it left it idle. Calibration compares the values of the GPU's
// sensors with these phases. Plain data; CLOCK_MONOTONIC nanoseconds of the host, phases in order of time.
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
  LoadSpan idle;                     // joulemap has no CUDA context on the GPU
  LoadSpan idle_with_context;        // with a context, in which only short kernels ran to find the size of the load
  LoadSpan square_waves;             // load on and off for random durations
  std::vector<LoadSpan> load_spans;  // intervals within `square_waves` in which the load was on, in order of time
  LoadSpan full_load;                // load on continuously
  LoadSpan after_load;               // the context still exists, nothing runs
  LoadSpan idle_after_context;       // the context is destroyed
};

}  // namespace joulemap
