// SPDX-License-Identifier: Apache-2.0
//
// ThrottlingReadings: how often a GPU reported that its clocks are reduced, from readings of NVML's clock event
// reasons. The power of kernels then differs from their power at full speed, so a report states it. Plain data; pure.
#pragma once

#include <cstdint>
#include <string>

#include "model/diagnostics.h"
#include "model/report_result.h"

namespace joulemap::attribution {

class ThrottlingReadings {
 public:
  // `reasons`: bit mask of nvmlClocksEventReasons.
  void add(std::uint64_t reasons);
  // Fraction of the readings at the power limit, 0 .. 1; 0 without readings.
  double power_limited_fraction() const;
  // True if a power limit, heat or the hardware reduced clocks often enough to report.
  bool is_throttled() const;
  const ThrottleReadingCounts& clock_readings() const { return clock_readings_; }
  // Adds diagnostics on reduced clocks; nothing if clocks were hardly ever reduced.
  void add_diagnostics(const std::string& domain, Diagnostics& diagnostics) const;

 private:
  bool is_frequent(std::uint64_t count) const;

  ThrottleReadingCounts clock_readings_;
  std::uint64_t power_limited_readings_ = 0;
  std::uint64_t thermal_slowdown_readings_ = 0;  // by heat, or by hardware slowdown
};

}  // namespace joulemap::attribution
