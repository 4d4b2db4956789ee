// SPDX-License-Identifier: Apache-2.0
//
// Profile: all that predictions for one GPU need, in one small file (docs/prediction.md): the datasheet, fitted
// coefficients, trees, and how wide intervals have to be. JSON, below 1 MB. Values; reading and writing are pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "predict/model/network_model.h"
#include "predict/model/operation_model.h"

namespace joulemap::predict {

enum class ProfileBasis {
  fitted,     // to measurements of such a GPU
  datasheet,  // scaled from another one by what their makers say: intervals are wide
};

struct Profile {
  std::string device;  // "NVIDIA H200"
  ProfileBasis basis = ProfileBasis::fitted;
  std::string software;         // "PyTorch 2.11.0, driver 580.159.04"
  std::int64_t operations = 0;  // distinct ones that it was fitted to
  std::int64_t networks = 0;    // settings of networks
  OperationModel operation;
  NetworkModel network;
};

std::string profile_json(const Profile& profile);
Result<Profile> read_profile(std::string_view json, std::string_view name);

// The profile that is built into the program (data/devices/h200.json); read each time it is asked for.
Profile h200_profile();

// By name ("h200", "A100", as the driver writes it): fitted where there is one, else from the datasheet. An Error names
// the GPUs that are known.
Result<Profile> profile_for(std::string_view device);

}  // namespace joulemap::predict
