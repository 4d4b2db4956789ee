// SPDX-License-Identifier: Apache-2.0
//
// calibrate --predict: a profile of this machine's GPU, for predictions. Lets the collector of the Python package measure
// operations for some minutes, fits, and keeps the profile where `predict --device` finds it.
#pragma once

#include <string>

namespace joulemap::cli {

struct PredictionCalibration {
  double minutes = 8;
  std::string python = "python3";
};

// Exit code of the program. `output`: the profile's file; empty: in the folder of what joulemap keeps.
int calibrate_prediction(const PredictionCalibration& wanted, const std::string& output);

}  // namespace joulemap::cli
