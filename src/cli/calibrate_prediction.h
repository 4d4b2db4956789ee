// SPDX-License-Identifier: Apache-2.0
//
// calibrate --predict: makes a prediction profile of this machine's GPU. Runs the collector of the Python package for
// some minutes to measure operations, fits a model, and stores the profile where `predict --device` finds it.
#pragma once

#include <string>

namespace joulemap::cli {

struct PredictionCalibrationOptions {
  double minutes = 8;
  std::string python = "python3";
};

// Returns the exit code of the program. `output`: the profile's file; empty: the data folder of joulemap.
int calibrate_prediction(const PredictionCalibrationOptions& options, const std::string& output);

}  // namespace joulemap::cli
