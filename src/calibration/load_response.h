// SPDX-License-Identifier: Apache-2.0
//
// Response of a GPU sensor to square waves of load: its lag and its averaging. A counter is fitted as an integral of
// the load since its previous update. A gauge is fitted as a moving average and as an exponential average, and the
// model with the smaller residual is returned. Pure; CLOCK_MONOTONIC nanoseconds, seconds, watts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/channel.h"
#include "model/load_phases.h"

namespace joulemap::calibration {

// A value of a channel and the time from which it was shown: joules of a counter, watts of a gauge.
struct PublishedValue {
  std::int64_t update_time_ns = 0;
  double value = 0;
};

enum class SensorAveraging : std::uint8_t {
  integral,             // counter: everything since the previous update
  moving_average,       // gauge: mean over the last averaging_time_s
  exponential_average,  // gauge: exponential average with the time constant averaging_time_s
};

struct LoadResponse {
  SensorAveraging averaging = SensorAveraging::integral;
  double averaging_time_s = 0;  // window length or time constant
  double lag_s = 0;
  double lag_low_s = 0;  // 90 % interval
  double lag_high_s = 0;
  bool is_lag_identified = false;    // false: no lag fits better than another, and the fields above are meaningless
  double mean_w = 0;                 // mean power over the waves, from the fit
  double mean_standard_error_w = 0;  // standard error of mean_w
  double residual_sd_w = 0;          // residual standard deviation of a value

  // Time after an instant drop of the load until less than a tenth of the drop is still shown.
  double fall_time_s(double period_s) const;
};

// Values must be in order of time. None when the waves contain too few of them.
std::optional<LoadResponse> find_load_response(ChannelKind kind, std::span<const PublishedValue> published_values,
                                               const LoadPhases& phases);

// Mean power that a channel shows for a span, shifted by its total delay `delay_s`; none when it shows no value.
std::optional<double> mean_published_w(ChannelKind kind, std::span<const PublishedValue> published_values,
                                       const LoadSpan& span, double delay_s);

// Time from the begin of `span` until the channel last shows more than `low_w` plus a tenth of the way to `high_w`. 0
// when it never does; none when it still does at the end.
std::optional<double> time_to_fall_s(ChannelKind kind, std::span<const PublishedValue> published_values,
                                     const LoadSpan& span, double low_w, double high_w);

}  // namespace joulemap::calibration
