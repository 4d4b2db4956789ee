// SPDX-License-Identifier: Apache-2.0
//
// Fits a Profile to tables of measurements. Pure: texts in, a profile out; a few seconds of one core.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "predict/fit/measured_operations.h"
#include "predict/model/network_model.h"
#include "predict/model/profile.h"

namespace joulemap::predict {

// Texts of CSV (docs/prediction-data.md); those of networks may be empty.
struct FitTables {
  std::string operations;
  std::string layers;
  std::string networks;
  std::string busy;
  std::string network_operations;
  std::string network_settings;
  std::string seed_operations;  // of the seed's networks (seed_protocol.h), to judge by
  std::string seed_settings;
  std::string held_out;  // networks that nothing is fitted to, to judge by; listed with the others
  std::string device;    // its name; where no datasheet has it, the measurements tell its rates
};

struct FitData {
  std::vector<MeasuredOperation> operations;  // alone
  std::vector<MeasuredOperation> layers;      // within networks: times
  NetworkTable networks;
  NetworkTable held_out;
  Datasheet sheet;
};
// What the fastest of the measured operations say of a GPU that is in no table of datasheets.
Datasheet measured_datasheet(std::span<const MeasuredOperation> rows, const std::string& name);

Result<FitData> read_fit_data(const FitTables& tables);

// What of the data is not to be learned from.
struct LeftOut {
  std::set<std::string, std::less<>> families;
  std::set<std::string, std::less<>> keys;      // of single operations
  std::set<std::string, std::less<>> settings;  // of networks
  bool all_networks = false;                    // learn from operations alone
};
Result<Profile> fit_to(const FitData& data, const LeftOut& left_out);

// The sums over the operations of networks by a model. They point into the table.
std::vector<NetworkRow> network_rows(const NetworkTable& table, const OperationModel& operation,
                                     const NetworkModel& network);

// Everything, with intervals as wide as families that were left out need them.
Result<Profile> fit_profile(const FitTables& tables);

}  // namespace joulemap::predict
