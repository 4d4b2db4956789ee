// SPDX-License-Identifier: Apache-2.0
//
// DeviceProfile: everything that predictions for one GPU need, in one JSON file below 1 MB
// (docs/explanation/prediction.md): the datasheet, fitted coefficients, kriging samples, trees and interval widths.
// Values; reading and writing are pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "predict/model/network_model.h"
#include "predict/model/operation_model.h"

namespace joulemap::predict {

enum class ProfileBasis {
  fitted,     // fitted to measurements of this GPU model
  datasheet,  // scaled from a measured GPU by the ratios of the datasheets: wide intervals
};

struct DeviceProfile {
  std::string device;  // "NVIDIA H200"
  ProfileBasis basis = ProfileBasis::fitted;
  std::string software;         // "PyTorch 2.11.0, driver 580.159.04"
  std::int64_t operations = 0;  // count of distinct operations in the fit
  std::int64_t networks = 0;    // count of network settings in the fit
  OperationModel operation_model;
  NetworkModel network_model;
};

std::string profile_json(const DeviceProfile& profile);
Result<DeviceProfile> read_profile(std::string_view json, std::string_view name);

// The profile of the H200 that is compiled into joulemap (data/devices/h200.json). Each call parses it again.
DeviceProfile h200_profile();

// Looks up a GPU by name ("h200", "A100", or the driver's name): the fitted profile if there is one, else one from the
// datasheet. The Error lists the known GPUs.
Result<DeviceProfile> find_device_profile(std::string_view device);

}  // namespace joulemap::predict
