// SPDX-License-Identifier: Apache-2.0
//
// CalibrateResult: the findings of `joulemap calibrate`, one entry for each channel. Plain data.
#pragma once

#include <string>
#include <vector>

#include "model/channel.h"
#include "model/diagnostics.h"
#include "model/recorded.h"
#include "model/sampler_cost.h"

namespace joulemap {

struct CalibrateResult {
  double observed_s = 0;
  std::vector<Channel> channels;             // in sensor order
  std::vector<ChannelCalibration> findings;  // one for each channel
  std::vector<std::string> loaded;           // domains of the GPUs that calibration loaded
  std::vector<SamplerCost> samplers;
  std::string calibration_file;  // path of the calibration file; empty when nothing was saved
  Diagnostics diagnostics;
};

}  // namespace joulemap
