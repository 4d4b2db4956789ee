// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/sensor_model.h"

#include <algorithm>

namespace joulemap::attribution {
namespace {

// Relative standard deviation: active-idle power of the same device varies with temperature and memory clock.
constexpr double kCalibratedIdleRelativeSd = 0.04;

struct ModelIdlePower {
  std::string_view device_model;  // substring of the device's model name
  IdlePower idle;
};
// H200: measured, 118 to 140 W (bench/h200). The others are rough values that this project has not measured: their
// spread is wide.
constexpr ModelIdlePower kDefaultIdlePowers[] = {
    {"H200", {128, 7}}, {"H100", {115, 20}}, {"A100", {75, 20}}, {"V100", {55, 15}}, {"L40", {85, 25}},
};

std::int64_t to_nanoseconds(double time_s) { return static_cast<std::int64_t>(time_s * 1e9); }

std::optional<CalibratedLag> make_calibrated_lag(const ChannelCalibration& calibration) {
  if (!calibration.lag_s) return std::nullopt;
  CalibratedLag lag;
  lag.lag_ns = to_nanoseconds(*calibration.lag_s);
  lag.low_ns = to_nanoseconds(calibration.lag_low_s.value_or(*calibration.lag_s));
  lag.high_ns = to_nanoseconds(calibration.lag_high_s.value_or(*calibration.lag_s));
  // A moving average over a window has the same mean delay as a time constant of half its length.
  if (calibration.time_constant_s || calibration.window_s)
    lag.time_constant_ns =
        to_nanoseconds(calibration.time_constant_s ? *calibration.time_constant_s : *calibration.window_s / 2);
  return lag;
}

}  // namespace

SensorModel find_calibrated_sensor_model(std::span<const ChannelCalibration> calibrations,
                                         std::span<const Channel> channels, std::string_view device) {
  SensorModel model;
  for (const ChannelCalibration& calibration : calibrations) {
    const auto is_same_channel = [&](const Channel& candidate) {
      return candidate.name == calibration.channel && candidate.device == calibration.device;
    };
    const auto channel = std::find_if(channels.begin(), channels.end(), is_same_channel);
    if (channel == channels.end() || calibration.device != device) continue;
    if (channel->quantity == Quantity::energy) {
      model.counter_lag = make_calibrated_lag(calibration);
      if (calibration.gain_spread) model.gain_spread = *calibration.gain_spread;
      if (calibration.active_idle_w)
        model.active_idle_power = {*calibration.active_idle_w, kCalibratedIdleRelativeSd * *calibration.active_idle_w};
    } else if (channel->quantity == Quantity::power_history) {
      model.history_lag = make_calibrated_lag(calibration);
      // The regression models a gauge as an exponential average, so a lag without a time constant is of no use.
      if (model.history_lag && model.history_lag->time_constant_ns <= 0) model.history_lag.reset();
    }
  }
  return model;
}

std::optional<IdlePower> default_idle_power(std::string_view device_model) {
  for (const ModelIdlePower& model_idle_power : kDefaultIdlePowers) {
    if (device_model.find(model_idle_power.device_model) != std::string_view::npos) return model_idle_power.idle;
  }
  return std::nullopt;
}

}  // namespace joulemap::attribution
