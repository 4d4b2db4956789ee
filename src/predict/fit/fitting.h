// SPDX-License-Identifier: Apache-2.0
//
// Fits a Profile to tables of measurements. Pure: takes texts, returns a profile; takes a few seconds of one core.
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

// CSV texts (docs/prediction-data.md); those of networks may be empty.
struct FitTables {
  std::string operations;
  std::string layers;
  std::string networks;
  std::string busy;
  std::string network_operations;
  std::string network_settings;
  std::string study_operations;  // networks of the study protocol (study_protocol.h), for evaluation
  std::string study_settings;
  std::string held_out;  // networks outside of the fit, for evaluation; listed with the others
  std::string device;    // GPU name; without a datasheet the measurements give its rates
};

struct FitData {
  std::vector<MeasuredOperation> operations;  // isolated
  std::vector<MeasuredOperation> layers;      // within networks: times only
  NetworkTable networks;
  NetworkTable held_out;
  Datasheet sheet;
};
// Rates of a GPU without a datasheet, estimated from the fastest measured operations.
Datasheet measured_datasheet(std::span<const MeasuredOperation> rows, const std::string& name);

Result<FitData> read_fit_data(const FitTables& tables);

// Data to exclude from the fit.
struct FitExclusions {
  std::set<std::string, std::less<>> families;
  std::set<std::string, std::less<>> keys;      // of isolated operations
  std::set<std::string, std::less<>> settings;  // of networks
  bool all_networks = false;                    // fit to operations only
};
Result<DeviceProfile> fit_profile_excluding(const FitData& data, const FitExclusions& exclusions);

// Sums over the operations of each network under a model. The rows point into the table.
std::vector<NetworkObservation> network_observations(const NetworkTable& table, const OperationModel& operation,
                                                     const NetworkModel& network);

// Fits everything; the widths of intervals come from held-out families.
Result<DeviceProfile> fit_profile(const FitTables& tables, const ProgressCallback& on_progress = {});

}  // namespace joulemap::predict
