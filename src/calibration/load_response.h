// SPDX-License-Identifier: Apache-2.0
//
// How a sensor of a GPU follows square waves of load: how late it is, and over which time it averages. What it showed is
// compared with what sensors of all kinds would have shown: a counter that adds up everything, a mean of a window, a
// memory that fades. The one that leaves the least unexplained is taken, unless no lag fits better than another. Pure;
// CLOCK_MONOTONIC nanoseconds, seconds, watts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/channel.h"
#include "model/load_phases.h"

namespace joulemap::calibration {

// A value of a channel, and the moment from which it was shown: joules of a counter, watts of a gauge.
struct ShownValue {
  std::int64_t time_ns = 0;
  double value = 0;
};

enum class Averaging : std::uint8_t {
  all,     // of a counter: everything since the step before
  window,  // the mean of the last so much time
  memory,  // the past counts less and less, exponentially
};

struct LoadResponse {
  Averaging averaging = Averaging::all;
  double averaged_s = 0;  // the window, or the time constant
  double lag_s = 0;
  double lag_low_s = 0;  // 90 %
  double lag_high_s = 0;
  bool lag_known = false;  // else no lag fits better than another, and nothing of the above says anything
  double mean_w = 0;       // over the waves, as the fitted powers have it
  double mean_spread_w = 0;
  double noise_w = 0;  // what is left unexplained of a value

  // After a fall from load to rest at once, less than a tenth of it is still shown after so long.
  double falls_within_s(double period_s) const;
};

// Nothing where too few values were seen in the waves. Values in order of time.
std::optional<LoadResponse> find_response(ChannelKind kind, std::span<const ShownValue> shown,
                                          const LoadPhases& phases);

// The mean power that a channel showed of a stretch of time, once it is late and slow by so much; nothing where it showed
// none.
std::optional<double> mean_shown_w(ChannelKind kind, std::span<const ShownValue> shown, const LoadSpan& span,
                                   double late_s);

// How long after the beginning of `span` a channel last showed more than a tenth of the way from `low_w` to `high_w`,
// 0 where it never did; nothing where it still did in the end.
std::optional<double> time_to_fall_s(ChannelKind kind, std::span<const ShownValue> shown, const LoadSpan& span,
                                     double low_w, double high_w);

}  // namespace joulemap::calibration
