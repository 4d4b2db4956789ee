// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/throttling.h"

#include <fmt/format.h>

namespace joulemap::attribution {
namespace {

// NVML API reference, nvmlClocksEventReasons.
constexpr std::uint64_t kSwPowerCapReason = 0x4;
constexpr std::uint64_t kHwSlowdownReason = 0x8;
constexpr std::uint64_t kSwThermalSlowdownReason = 0x20;
constexpr std::uint64_t kHwThermalSlowdownReason = 0x40;
constexpr std::uint64_t kHwPowerBrakeReason = 0x80;
constexpr std::uint64_t kSlowdownReasons =
    kHwSlowdownReason | kSwThermalSlowdownReason | kHwThermalSlowdownReason | kHwPowerBrakeReason;

// Clock event reasons are read about once a second, which shows how often clocks were reduced, but not when.
constexpr std::uint64_t kMinClockReadings = 2;
constexpr double kMinReportedThrottledFraction = 0.02;

}  // namespace

void ThrottlingReadings::add(std::uint64_t reasons) {
  ++clock_readings_.readings;
  if ((reasons & (kSwPowerCapReason | kSlowdownReasons)) != 0) ++clock_readings_.throttled;
  if ((reasons & kSwPowerCapReason) != 0) ++power_limited_readings_;
  if ((reasons & kSlowdownReasons) != 0) ++thermal_slowdown_readings_;
}

double ThrottlingReadings::power_limited_fraction() const {
  return clock_readings_.readings > 0
             ? static_cast<double>(power_limited_readings_) / static_cast<double>(clock_readings_.readings)
             : 0;
}

bool ThrottlingReadings::is_frequent(std::uint64_t count) const {
  return clock_readings_.readings >= kMinClockReadings &&
         static_cast<double>(count) >= kMinReportedThrottledFraction * static_cast<double>(clock_readings_.readings);
}

bool ThrottlingReadings::is_throttled() const {
  return is_frequent(power_limited_readings_) || is_frequent(thermal_slowdown_readings_);
}

void ThrottlingReadings::add_diagnostics(const std::string& domain, Diagnostics& diagnostics) const {
  const auto share = [&](std::uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(clock_readings_.readings);
  };
  if (is_frequent(power_limited_readings_)) {
    diagnostics.add(
        {"power_limited", power_limited_readings_,
         fmt::format(
             "{} was at its power limit in {:.0f} % of the readings: kernels use less power then than in a short burst",
             domain, 100 * share(power_limited_readings_)),
         "compare only runs with the same power limit"});
  }
  if (is_frequent(thermal_slowdown_readings_)) {
    diagnostics.add({"clocks_slowed", thermal_slowdown_readings_,
                     fmt::format("{} was throttled by temperature or hardware in {:.0f} % of the readings", domain,
                                 100 * share(thermal_slowdown_readings_)),
                     "check its cooling and measure again"});
  }
}

}  // namespace joulemap::attribution
