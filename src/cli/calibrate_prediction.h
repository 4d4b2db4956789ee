// SPDX-License-Identifier: Apache-2.0
//
// calibrate --predict: makes a prediction profile of this machine's GPU. It runs `python -m joulemap collect` for some
// minutes to measure operations, fits a model, and stores the profile where `predict --device` finds it.
#pragma once

#include <string>

namespace joulemap::cli {

struct PredictionCalibrationOptions {
  double measuring_minutes = 8;
  std::string python_program = "python3";
};

// Returns joulemap's exit code. `output`: file for the profile; empty: device_profile_path() of the measured GPU.
int calibrate_prediction(const PredictionCalibrationOptions& options, const std::string& output);

}  // namespace joulemap::cli
