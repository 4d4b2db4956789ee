// SPDX-License-Identifier: Apache-2.0
//
// A span of time, and points of energy and power over time. Plain data; CLOCK_MONOTONIC nanoseconds of the host that
// measured.
#pragma once

#include <cstdint>

namespace joulemap {

struct TimeSpan {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

// Cumulative energy of a channel at one time.
struct EnergyPoint {
  std::int64_t time_ns = 0;
  double joules = 0;
};

// Power of a device at one time, as its sensor reports it.
struct PowerPoint {
  std::int64_t time_ns = 0;
  double watts = 0;
};

}  // namespace joulemap
