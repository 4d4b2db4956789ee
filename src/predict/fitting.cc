// SPDX-License-Identifier: Apache-2.0
#include "predict/fitting.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "predict/evaluation.h"

namespace joulemap::predict {

Result<FitData> read_fit_data(const FitTables& tables) {
  FitData data;
  const std::optional<Datasheet> sheet = find_datasheet(tables.device);
  if (!sheet)
    return Error{ErrorCode::not_found, fmt::format("no datasheet of \"{}\"", tables.device),
                 "joulemap predict --device list"};
  data.sheet = *sheet;
  Result<std::vector<MeasuredOperation>> operations = read_operations_table(tables.operations);
  if (!operations) return std::move(operations).error().with_context("operations");
  data.operations = std::move(*operations);
  if (!tables.layers.empty()) {
    Result<std::vector<MeasuredOperation>> layers = read_layers_table(tables.layers);
    if (!layers) return std::move(layers).error().with_context("layers");
    data.layers = std::move(*layers);
    data.launches = fit_launches(tables.layers);
  }
  if (!tables.networks.empty() && !tables.network_settings.empty()) {
    Result<NetworkTable> networks =
        read_networks_tables(tables.networks, tables.busy, tables.network_operations, tables.network_settings);
    if (!networks) return std::move(networks).error().with_context("networks");
    data.networks = std::move(*networks);
  }
  return data;
}

std::vector<NetworkRow> network_rows(const FitData& data, const OperationModel& operation,
                                     const NetworkModel& network) {
  std::vector<std::optional<OperationEstimate>> known(data.networks.operations.size());
  std::vector<NetworkRow> rows;
  for (const MeasuredNetwork& measured : data.networks.networks) {
    NetworkRow row{&measured, {}, 1};
    row.sums.training = measured.training;
    for (const auto& [index, count] : measured.operations) {
      Operation one = data.networks.operations[index];
      if (!known[index]) known[index] = estimate(operation, one, {false, true});
      one.count = static_cast<std::int64_t>(count);
      add_operation(row.sums, network, one, *known[index]);
    }
    rows.push_back(row);
  }
  return rows;
}

Result<Profile> fit_to(const FitData& data, const LeftOut& left_out) {
  std::vector<MeasuredOperation> rows;
  const auto is_wanted = [&left_out](const MeasuredOperation& row) {
    return !left_out.families.contains(row.family) && !left_out.keys.contains(row.key);
  };
  for (const MeasuredOperation& row : data.operations) {
    if (is_wanted(row)) rows.push_back(row);
  }
  const std::size_t alone = rows.size();
  for (const MeasuredOperation& row : data.layers) {
    if (is_wanted(row) && !left_out.all_networks) rows.push_back(row);
  }
  Result<OperationModel> operation = fit_operation_model(rows, data.sheet);
  if (!operation) return std::move(operation).error();
  Profile profile;
  profile.device = data.sheet.name;
  profile.operations = static_cast<std::int64_t>(alone);
  profile.operation = std::move(*operation);
  profile.network.idle_w = data.sheet.idle_w;
  profile.network.launches = data.launches;
  std::vector<NetworkRow> all = network_rows(data, profile.operation, profile.network);
  std::vector<NetworkRow> learned;
  for (const NetworkRow& row : all) {
    if (!left_out.families.contains(row.network->family)) learned.push_back(row);
  }
  profile.networks = static_cast<std::int64_t>(learned.size());
  if (!learned.empty()) profile.network = fit_network_model(learned, profile.network);
  return profile;
}

Result<Profile> fit_profile(const FitTables& tables) {
  const Result<FitData> data = read_fit_data(tables);
  if (!data) return data.error();
  Result<Profile> profile = fit_to(*data, {});
  if (!profile) return profile;
  const Result<std::vector<NetworkCase>> cases = families_left_out(*data, kFoldsOfIntervals);
  if (!cases) return cases.error();
  set_widths(profile->network, *cases);
  return profile;
}

}  // namespace joulemap::predict
