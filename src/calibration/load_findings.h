// SPDX-License-Identifier: Apache-2.0
//
// Derives calibration findings from the sensor values of one GPU under load and at idle: lag and averaging of each
// channel, its idle and loaded power, the decay after a load, and the relative gains of the channels. Pure.
#pragma once

#include <vector>

#include "calibration/load_response.h"
#include "model/channel.h"
#include "model/diagnostics.h"
#include "model/load_phases.h"
#include "model/recorded.h"

namespace joulemap::calibration {

// A channel that covers the energy or power of a whole GPU.
struct GpuLoadChannel {
  Channel channel;
  std::vector<PublishedValue> published_values;
  double time_uncertainty_s = 0;          // common uncertainty of the times of all values
  ChannelCalibration* finding = nullptr;  // filled in; its refresh_s must be set before
};

void add_load_findings(std::vector<GpuLoadChannel>& channels, const LoadPhases& phases, Diagnostics& diagnostics);

}  // namespace joulemap::calibration
