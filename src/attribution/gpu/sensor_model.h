// SPDX-License-Identifier: Apache-2.0
//
// Sensor model of a GPU from the calibration stored in a recording, as input of the power regression: lags, time
// constants and the gain error of the counter. Defaults where there is no calibration. Pure; nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "energy/edge_rules.h"
#include "model/channel.h"
#include "model/recorded.h"

namespace joulemap::attribution {

// Relative standard deviation of the counter's gain without a calibration: on an H200 the counter and the integral of
// its power differ by 0.76 %.
inline constexpr double kDefaultGainRelativeSd = 0.005;

struct CalibratedLag {
  std::int64_t lag_ns = 0;
  std::int64_t low_ns = 0;  // 90 % interval
  std::int64_t high_ns = 0;
  std::int64_t time_constant_ns = 0;  // of a gauge; 0 for a counter
};

// Power of a device with a CUDA context on which nothing runs.
struct IdlePower {
  double watts = 0;
  double sd_w = 0;  // standard deviation
};

struct SensorModel {
  std::optional<CalibratedLag> counter_lag;
  std::optional<CalibratedLag> history_lag;  // of the device's power history
  double gain_spread = kDefaultGainRelativeSd;
  std::optional<IdlePower> active_idle_power;

  std::int64_t counter_lag_ns() const { return counter_lag ? counter_lag->lag_ns : kUsualCounterLag_ns; }
};

// Sensor model of one device; `channels` contains the quantity of each calibrated channel.
SensorModel find_calibrated_sensor_model(std::span<const ChannelCalibration> calibrations,
                                         std::span<const Channel> channels, std::string_view device);

// Typical active-idle power of a GPU model, for devices without a calibration; empty for unknown models.
std::optional<IdlePower> default_idle_power(std::string_view device_model);

}  // namespace joulemap::attribution
