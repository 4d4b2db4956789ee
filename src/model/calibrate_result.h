// SPDX-License-Identifier: Apache-2.0
//
// CalibrateResult: what `joulemap calibrate` found out, a line for each channel. Plain data.
#pragma once

#include <string>
#include <vector>

#include "model/channel.h"
#include "model/diagnostics.h"
#include "model/recorded.h"
#include "model/sampler_cost.h"

namespace joulemap {

struct CalibrateResult {
  double watched_s = 0;
  std::vector<Channel> channels;             // in the order of their sensors
  std::vector<ChannelCalibration> findings;  // one for each channel
  std::vector<std::string> loaded;           // domains of the GPUs that were
  std::vector<SamplerCost> samplers;
  std::string kept_in;  // the file; empty when they were not kept
  Diagnostics diagnostics;
};

}  // namespace joulemap
