// SPDX-License-Identifier: Apache-2.0
//
// ChannelEnergy: what one channel says about one window of time. Plain data.
#pragma once

#include <optional>
#include <string>

#include "energy/energy_accumulator.h"
#include "model/channel.h"

namespace joulemap {

struct ChannelEnergy {
  Channel channel;
  std::optional<double> joules;
  double uncertainty_j = 0;  // half width at 95 %, meaningful when there are joules
  std::string reason;        // why there are none: "frozen", "too-short", "vanished", "denied", "garbage" ...
  double missing_s = 0;      // part of the window whose energy this channel does not know
  double frozen_s = 0;       // of which at the end, standing still
  double bridged_s = 0;      // of which the energy is estimated from the readings around it, and part of joules
  double unread_s = 0;       // pauses between readings
  std::uint64_t pauses = 0;  // how many
  double refresh_s = 0;      // how often the value was seen to change
  EnergyTally tally;
};

}  // namespace joulemap
