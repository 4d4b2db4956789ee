// SPDX-License-Identifier: Apache-2.0
//
// What a calibration that lies in a recording says of a GPU's sensors, as a regression of powers wants it: how late they
// are, what they remember, how far the counter may be off as a whole. Where there is none, what is usual. Pure; nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "energy/edge_rules.h"
#include "model/channel.h"
#include "model/recorded.h"

namespace joulemap::attribution {

// A standard deviation of what the counter is wrong by as a whole, until a calibration tells: on an H200 the counter and the
// integral of its power differ by 0.76 %.
inline constexpr double kUsualGainSpread = 0.005;

struct KnownLag {
  std::int64_t lag_ns = 0;
  std::int64_t low_ns = 0;  // 90 %
  std::int64_t high_ns = 0;
  std::int64_t memory_ns = 0;  // of a gauge: its time constant
};

struct KnownSensing {
  std::optional<KnownLag> counter;
  std::optional<KnownLag> history;  // of what the device keeps of its power
  double gain_spread = kUsualGainSpread;

  std::int64_t counter_lag_ns() const { return counter ? counter->lag_ns : kUsualCounterLag_ns; }
};

// Of one device; `channels` tell which of its channels is what.
KnownSensing known_sensing(std::span<const ChannelCalibration> calibrations, std::span<const Channel> channels,
                           std::string_view device);

}  // namespace joulemap::attribution
