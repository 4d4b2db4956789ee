// SPDX-License-Identifier: Apache-2.0
#include "predict/fit/fitting.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "predict/evaluation/evaluation.h"
#include "predict/model/parallel_for.h"

namespace joulemap::predict {
namespace {

// Fractions of the datasheet's FLOP/s and memory bandwidth that the best kernels reach.
constexpr double kReachedPeakFraction = 0.75;
constexpr double kReachedBandwidthFraction = 0.9;
// Bytes of an operation that exceed any cache, so that its rate is that of the memory.
constexpr double kMinMemoryBound_bytes = 300e6;

double mean_idle_w(std::span<const MeasuredOperation> rows) {
  double sum_w = 0;
  double measured_count = 0;
  for (const MeasuredOperation& row : rows) {
    sum_w += row.idle_w;
    measured_count += row.idle_w > 0 ? 1 : 0;
  }
  return measured_count > 0 ? sum_w / measured_count : 0;
}

// Idle power differs between GPUs of one type, by 16 W of 125 W among H200s. Converts the energy of each operation to a
// GPU with the mean idle power.
void normalize_idle_power(std::span<MeasuredOperation> rows, double idle_w) {
  for (MeasuredOperation& row : rows) {
    const double corrected_j = *row.energy_j - (row.idle_w - idle_w) * row.time_s;
    // At the power limit, total power does not depend on idle power, so throttled rows stay unchanged.
    if (row.idle_w > 0 && corrected_j > 0 && !row.is_throttled) row.energy_j = corrected_j;
  }
}

void set_idle_offsets(NetworkTable& table, double idle_w) {
  for (MeasuredNetwork& network : table.networks) {
    if (network.idle_w > 0) network.machine.idle_offset_w = network.idle_w - idle_w;
  }
}

}  // namespace

Datasheet estimate_datasheet(std::span<const MeasuredOperation> rows, const std::string& name) {
  Datasheet datasheet = known_datasheets().front();  // for multiprocessors and cache size, which rows do not show
  datasheet.name = name;
  datasheet.peak_flops = {1e12, 1e12, 1e12, 1e12};
  datasheet.memory_bytes_per_s = 1e10;
  datasheet.power_limit_w = 0;
  for (const MeasuredOperation& row : rows) {
    const OperationWork work = compute_work(row.operation);
    double& peak = datasheet.peak_flops[static_cast<std::size_t>(row.operation.dtype)];
    if (is_matrix_product(row.operation.kind)) peak = std::max(peak, work.flops / row.time_s / kReachedPeakFraction);
    if (!is_matrix_product(row.operation.kind) && row.operation.kind != Kind::embedding &&
        work.bytes > kMinMemoryBound_bytes) {
      datasheet.memory_bytes_per_s =
          std::max(datasheet.memory_bytes_per_s, work.bytes / row.time_s / kReachedBandwidthFraction);
    }
    datasheet.power_limit_w = std::max(datasheet.power_limit_w, row.energy_j.value_or(0) / row.time_s);
  }
  datasheet.cache_bytes_per_s = 2 * datasheet.memory_bytes_per_s;
  datasheet.idle_w = datasheet.power_limit_w / 6;
  return datasheet;
}

Result<FitData> read_fit_data(const FitTables& tables) {
  FitData data;
  data.learner = tables.learner;
  Result<std::vector<MeasuredOperation>> operations = read_operations_table(tables.operations);
  if (!operations) return std::move(operations).error().with_context("operations");
  data.operations = std::move(*operations);
  if (data.operations.empty())
    return Error{ErrorCode::malformed, "no operation was measured", "run python -m joulemap collect"};
  const std::optional<Datasheet> datasheet = find_datasheet(tables.device);
  data.datasheet = datasheet ? *datasheet : estimate_datasheet(data.operations, tables.device);
  if (const double idle_w = mean_idle_w(data.operations); idle_w > 0 && idle_w < data.datasheet.power_limit_w) {
    data.datasheet.idle_w = idle_w;
    normalize_idle_power(data.operations, idle_w);
  }
  if (!tables.layers.empty()) {
    Result<std::vector<MeasuredOperation>> layers = read_layers_table(tables.layers);
    if (!layers) return std::move(layers).error().with_context("layers");
    data.layers = std::move(*layers);
  }
  if (!tables.networks.empty() && !tables.network_settings.empty()) {
    Result<NetworkTable> networks =
        parse_measured_networks({tables.networks, tables.busy, tables.network_operations, tables.network_settings});
    if (!networks) return std::move(networks).error().with_context("networks");
    data.networks = std::move(*networks);
    set_idle_offsets(data.networks, data.datasheet.idle_w);
  }
  if (!tables.held_out.empty()) {
    Result<NetworkTable> held_out_networks = parse_measured_networks(
        {tables.held_out, "", tables.network_operations, tables.network_settings}, data.networks.fastest_launch_s);
    if (!held_out_networks) return std::move(held_out_networks).error().with_context("held-out networks");
    data.held_out_networks = std::move(*held_out_networks);
    set_idle_offsets(data.held_out_networks, data.datasheet.idle_w);
  }
  return data;
}

std::vector<NetworkObservation> make_network_observations(const NetworkTable& table, const OperationModel& operation,
                                                          const NetworkModel& network) {
  std::vector<bool> is_used(table.operations.size());
  for (const MeasuredNetwork& measured : table.networks) {
    for (const auto& [index, count] : measured.operations) is_used[index] = true;
  }
  std::vector<OperationEstimate> operation_estimates(table.operations.size());
  parallel_for(operation_estimates.size(), [&](std::size_t index) {
    if (is_used[index]) operation_estimates[index] = estimate(operation, table.operations[index], {false, true});
  });
  std::vector<NetworkObservation> rows;
  for (const MeasuredNetwork& measured : table.networks) {
    NetworkObservation row{&measured, {}};
    row.sums.training = measured.training;
    row.sums.python_call_count = measured.python_call_count;
    for (const auto& [index, count] : measured.operations) {
      Operation counted_operation = table.operations[index];
      counted_operation.count = static_cast<std::int64_t>(count);
      add_operation(row.sums, network, counted_operation, operation_estimates[index]);
    }
    rows.push_back(row);
  }
  return rows;
}

Result<DeviceProfile> fit_profile_excluding(const FitData& data, const FitExclusions& exclusions) {
  std::vector<MeasuredOperation> rows;
  const auto is_wanted = [&exclusions](const MeasuredOperation& row) {
    return !exclusions.families.contains(row.family) && !exclusions.keys.contains(row.key);
  };
  for (const MeasuredOperation& row : data.operations) {
    if (is_wanted(row)) rows.push_back(row);
  }
  const std::size_t operation_row_count = rows.size();
  for (const MeasuredOperation& row : data.layers) {
    if (is_wanted(row) && !exclusions.all_networks) rows.push_back(row);
  }
  Result<OperationModel> operation = fit_operation_model(rows, data.datasheet, data.learner);
  if (!operation) return std::move(operation).error();
  DeviceProfile profile;
  profile.device = data.datasheet.name;
  profile.operations = static_cast<std::int64_t>(operation_row_count);
  profile.operation_model = std::move(*operation);
  profile.network_model.idle_w = data.datasheet.idle_w;
  profile.network_model.power_limit_w = data.datasheet.power_limit_w;
  profile.network_model.launches = fit_launch_counts(std::span(rows).subspan(operation_row_count));
  std::vector<NetworkObservation> network_observations =
      make_network_observations(data.networks, profile.operation_model, profile.network_model);
  std::vector<NetworkObservation> training_observations;
  for (const NetworkObservation& row : network_observations) {
    const MeasuredNetwork& network = *row.network;
    if (!exclusions.families.contains(network.family) && !exclusions.settings.contains(network.setting))
      training_observations.push_back(row);
  }
  profile.networks = static_cast<std::int64_t>(training_observations.size());
  if (!training_observations.empty())
    profile.network_model = fit_network_model(training_observations, profile.network_model);
  return profile;
}

Result<DeviceProfile> fit_profile(const FitTables& tables, const ProgressCallback& on_progress) {
  const Result<FitData> data = read_fit_data(tables);
  if (!data) return data.error();
  Result<DeviceProfile> profile = fit_profile_excluding(*data, {});
  if (!profile) return profile;
  const double first_fit_share = 1.0 / (1 + kIntervalFoldCount);
  const Result<HeldOutCases> cases = cross_validate_families(
      *data, kIntervalFoldCount, make_partial_progress_callback(on_progress, first_fit_share, 1));
  if (!cases) return cases.error();
  set_interval_log_half_widths(profile->network_model, cases->networks);
  set_layer_log_half_width(profile->network_model, cases->layers);
  return profile;
}

}  // namespace joulemap::predict
