// SPDX-License-Identifier: Apache-2.0
//
// What the sensors of one GPU showed while it was loaded and while it rested, as findings of a calibration: lag and
// averaging of each channel, its powers at rest and under load, the way down, and how the channels' gains differ. Pure.
#pragma once

#include <vector>

#include "calibration/load_response.h"
#include "model/channel.h"
#include "model/diagnostics.h"
#include "model/load_phases.h"
#include "model/recorded.h"

namespace joulemap::calibration {

// One channel of a GPU that tells energy or power of all of it.
struct WatchedChannel {
  Channel channel;
  std::vector<ShownValue> shown;
  double known_to_s = 0;                  // the moments of all of them
  ChannelCalibration* finding = nullptr;  // what is to be filled in; knows its refresh
};

void add_load_findings(std::vector<WatchedChannel>& channels, const LoadPhases& phases, Diagnostics& diagnostics);

}  // namespace joulemap::calibration
