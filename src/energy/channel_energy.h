// SPDX-License-Identifier: Apache-2.0
//
// ChannelEnergy: the energy of one window of time according to one channel. Plain data.
#pragma once

#include <optional>
#include <string>

#include "energy/energy_accumulator.h"
#include "model/channel.h"

namespace joulemap {

struct ChannelEnergy {
  Channel channel;
  std::optional<double> joules;
  double uncertainty_j = 0;  // half width at 95 %; meaningful when `joules` is set
  // Why `joules` is not set: "no-readings", "frozen", "too-short", "vanished", "denied", "garbage" ...
  std::string missing_reason;
  double missing_s = 0;       // part of the window whose energy is unknown to this channel
  double frozen_tail_s = 0;   // part of missing_s at the end, in which the counter did not update
  double interpolated_s = 0;  // part whose energy is interpolated from the readings around it and included in joules
  double total_pause_s = 0;   // total length of pauses between readings
  std::uint64_t pause_count = 0;
  double refresh_s = 0;           // observed update period
  double too_short_window_s = 0;  // length of a window that is too short for a useful estimate; else 0
  EnergyTally tally;
};

}  // namespace joulemap
