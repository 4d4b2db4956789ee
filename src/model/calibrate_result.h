// SPDX-License-Identifier: Apache-2.0
//
// CalibrateResult: the result of `joulemap calibrate`: how each channel behaves. Plain data.
#pragma once

#include <string>
#include <vector>

#include "model/channel.h"
#include "model/diagnostics.h"
#include "model/recorded.h"
#include "model/sampler_cost.h"

namespace joulemap {

struct CalibrateResult {
  double observation_time_s = 0;             // duration of the whole calibration, idle and under load
  std::vector<Channel> channels;             // in sensor order
  std::vector<ChannelCalibration> findings;  // one per entry of `channels`, in the same order
  std::vector<std::string> loaded_domains;   // domains of the GPUs that calibration loaded: "gpu0"
  std::vector<SamplerCost> samplers;
  std::string calibration_file;  // path of the calibration file; empty when nothing was saved
  Diagnostics diagnostics;
};

}  // namespace joulemap
