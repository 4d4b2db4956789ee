// SPDX-License-Identifier: Apache-2.0
//
// LoadPhases: when `calibrate` made a GPU work and when it let it rest, as the host's clock saw it. What the GPU's sensors
// showed meanwhile is compared with it. Plain data; CLOCK_MONOTONIC nanoseconds, each phase after the one before.
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
  LoadSpan idle;                // no context of ours
  LoadSpan active_idle;         // a context, nothing has run in it but to find its pace
  LoadSpan waves;               // load on and off, in random lengths
  std::vector<LoadSpan> loads;  // in the waves: when it was on, in order of time
  LoadSpan full;                // on all the time
  LoadSpan after;               // the context is still there, nothing runs
  LoadSpan released;            // no context any more
};

}  // namespace joulemap
