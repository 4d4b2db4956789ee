// SPDX-License-Identifier: Apache-2.0
//
// A span of time, and what was known at a moment. Plain data; CLOCK_MONOTONIC nanoseconds of the host that measured.
#pragma once

#include <cstdint>

namespace joulemap {

struct TimeSpan {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

// The energy that a channel had counted by a moment.
struct EnergyPoint {
  std::int64_t time_ns = 0;
  double joules = 0;
};

// The power that a device reports for a moment.
struct PowerPoint {
  std::int64_t time_ns = 0;
  double watts = 0;
};

}  // namespace joulemap
