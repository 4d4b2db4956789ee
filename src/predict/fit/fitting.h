// SPDX-License-Identifier: Apache-2.0
//
// Fits a DeviceProfile to tables of measurements. Pure: takes texts, returns a profile. Takes some seconds on up to
// four threads (parallel_for.h).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "predict/fit/measured_operations.h"
#include "predict/model/device_profile.h"
#include "predict/model/network_model.h"

namespace joulemap::predict {

// CSV texts (docs/reference/prediction-data.md); all but `operations` may be empty.
struct FitTables {
  std::string operations;
  std::string layers;
  std::string networks;
  std::string busy;
  std::string network_operations;
  std::string network_settings;
  std::string study_operations;  // networks of the study protocol (study_protocol.h), for evaluation
  std::string study_settings;
  std::string held_out;  // measured networks that no fit uses, for evaluation; listed in network_settings, too
  std::string device;    // GPU name; if it has no datasheet, estimate_datasheet() estimates one
  Learner learner = Learner::boosting;
};

struct FitData {
  std::vector<MeasuredOperation> operations;  // measured in isolation
  std::vector<MeasuredOperation> layers;      // measured inside networks: times only
  NetworkTable networks;
  NetworkTable held_out_networks;
  Datasheet datasheet;
  Learner learner = Learner::boosting;
};
// A datasheet for a GPU that has none: peak rates and power limit estimated from the fastest measured operations.
Datasheet estimate_datasheet(std::span<const MeasuredOperation> rows, const std::string& name);

Result<FitData> read_fit_data(const FitTables& tables);

// Data to exclude from the fit.
struct FitExclusions {
  std::set<std::string, std::less<>> families;
  std::set<std::string, std::less<>> keys;      // keys of operations, isolated or inside networks
  std::set<std::string, std::less<>> settings;  // settings of networks
  bool all_networks = false;                    // excludes FitData::layers; the network model still uses all networks
};
Result<DeviceProfile> fit_profile_excluding(const FitData& data, const FitExclusions& exclusions);

// For each network of the table the sums over its operations, estimated by the model. The results point into the table.
std::vector<NetworkObservation> make_network_observations(const NetworkTable& table, const OperationModel& operation,
                                                          const NetworkModel& network);

// Fits a profile to all data. The widths of its intervals come from cross_validate_families().
Result<DeviceProfile> fit_profile(const FitTables& tables, const ProgressCallback& on_progress = {});

}  // namespace joulemap::predict
