// SPDX-License-Identifier: Apache-2.0
#include "predict/model/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "predict/graph/training_step.h"

namespace joulemap::predict {
namespace {

// Error factor of the physics model for a kind of operation without measurements.
constexpr double kUnmeasuredKindErrorFactor = 3;

struct PredictionSums {
  std::vector<LayerPrediction> layers;
  std::map<std::string, std::size_t, std::less<>> layer_index_by_name;
  NetworkOperationSums sums;
  std::set<std::string, std::less<>> unknown_layers;
  std::set<std::string, std::less<>> unmeasured_operation_kinds;  // kinds of operations without measurements
  double unmeasured_j = 0;
  std::map<std::string, double, std::less<>> costliest_operation_j;  // by layer: the most energy of one operation
};

LayerPrediction& find_or_add_layer(PredictionSums& parts, const Operation& operation) {
  const std::string& name = layer_name_of(operation);
  const auto [index_entry, is_new] = parts.layer_index_by_name.try_emplace(name, parts.layers.size());
  if (is_new) {
    parts.layers.emplace_back();
    parts.layers.back().name = name;
    parts.layers.back().op = operation.source;
    parts.layers.back().min_trust_factor = 1;
  }
  return parts.layers[index_entry->second];
}

double operation_energy_in_network_j(const NetworkModel& model, const Operation& operation,
                                     const OperationEstimate& operation_estimate) {
  const double above_idle_j = std::max(0.0, operation_estimate.energy_j - model.idle_w * operation_estimate.time_s);
  return model.energy_scales[energy_group_index(operation)] * above_idle_j +
         model.idle_w * model.gpu_time_scale * operation_estimate.time_s;
}

void add_operation_estimate(PredictionSums& parts, const DeviceProfile& profile, const Operation& operation) {
  if (!has_lower_bound(operation)) {
    parts.unknown_layers.insert(find_or_add_layer(parts, operation).name);
    return;
  }
  const OperationEstimate operation_estimate = estimate(profile.operation_model, operation, {false, true});
  add_operation(parts.sums, profile.network_model, operation, operation_estimate);
  const auto count = static_cast<double>(operation.count);
  const OperationWork work = compute_work(operation);
  const double energy_j = count * operation_energy_in_network_j(profile.network_model, operation, operation_estimate);
  LayerPrediction& layer = find_or_add_layer(parts, operation);
  double& max_operation_j = parts.costliest_operation_j[layer.name];
  if (operation.kind != Kind::view && energy_j > max_operation_j) {
    layer.op = operation.source;
    max_operation_j = energy_j;
  }
  layer.energy_j += energy_j;
  layer.time_s += count * operation_estimate.time_s * profile.network_model.gpu_time_scale;
  layer.flops += count * work.flops;
  layer.bytes += count * work.bytes;
  layer.physical_j += count * operation_estimate.physical_time_s * operation_estimate.physical_power_w;
  if (operation.kind != Kind::view)
    layer.min_trust_factor = std::min(layer.min_trust_factor, operation_estimate.trust_factor);
  if (operation.kind == Kind::unknown) {
    parts.unknown_layers.insert(layer.name);
  } else if (operation.kind != Kind::view && !is_measured(profile.operation_model.times, operation.kind)) {
    parts.unmeasured_operation_kinds.emplace(name_of(operation.kind));
    parts.unmeasured_j += energy_j;
  }
}

// At the power limit clocks drop: the GPU never waits, and every layer takes longer.
void stretch_layers_to_step(Prediction& prediction, double idle_w) {
  if (prediction.gpu_s <= 0) return;
  const double stretch = prediction.time_s / prediction.gpu_s;
  for (LayerPrediction& layer : prediction.layers) {
    layer.energy_j += idle_w * (stretch - 1) * layer.time_s;
    layer.time_s *= stretch;
  }
  prediction.gpu_s = prediction.time_s;
}

// `waiting` is the fraction of time that the GPU waits at full clocks.
void set_prediction_intervals(Prediction& prediction, const DeviceProfile& profile, const PredictionSums& parts,
                              double waiting) {
  const double width = interval_log_half_width(profile.network_model, prediction.training, waiting);
  prediction.low_j =
      std::max(0.0, prediction.energy_j * std::exp(-width) - parts.unmeasured_j * (1 - 1 / kUnmeasuredKindErrorFactor));
  prediction.high_j = prediction.energy_j * std::exp(width) + parts.unmeasured_j * (kUnmeasuredKindErrorFactor - 1);
  if (is_lower_bound(prediction)) prediction.high_j.reset();
  for (LayerPrediction& layer : prediction.layers) {
    // Trust below 1: the layer is beyond the measured range, and the interval widens.
    const double measured = profile.network_model.layer_log_half_width * (2 - layer.min_trust_factor);
    const double layer_log_half_width =
        layer.min_trust_factor > 0 ? measured : std::max(measured, std::log(kUnmeasuredKindErrorFactor));
    layer.low_j = layer.energy_j * std::exp(-layer_log_half_width);
    layer.high_j = layer.energy_j * std::exp(layer_log_half_width);
    if (parts.unknown_layers.contains(layer.name)) layer.high_j.reset();
  }
}

}  // namespace

const std::string& layer_name_of(const Operation& operation) {
  return operation.layer.empty() ? operation.source : operation.layer;
}

std::vector<Operation> list_executed_operations(const Graph& graph, const PredictOptions& options) {
  std::vector<Operation> operations =
      options.training ? make_training_step(graph, options.optimizer) : graph.operations;
  if (!options.training) {
    std::erase_if(operations, [](const Operation& operation) {
      return operation.kind == Kind::dropout || operation.kind == Kind::input;
    });
  }
  return options.mode == ExecutionMode::compiled ? to_compiled_operations(std::move(operations)) : operations;
}

Prediction predict(const DeviceProfile& profile, const Graph& graph, const PredictOptions& options) {
  PredictionSums parts;
  parts.sums.training = options.training;
  parts.sums.python_call_count = static_cast<double>(graph.python_call_count);
  for (const Operation& operation : list_executed_operations(graph, options))
    add_operation_estimate(parts, profile, operation);
  const NetworkEstimate network_estimate = estimate_network(profile.network_model, parts.sums, options.machine);
  Prediction prediction;
  prediction.device = profile.device;
  prediction.has_fitted_profile = profile.basis == ProfileBasis::fitted;
  prediction.training = options.training;
  prediction.energy_j = network_estimate.energy_j;
  prediction.time_s = network_estimate.time_s;
  prediction.gpu_s = network_estimate.gpu_s;
  prediction.host_s = network_estimate.host_s;
  prediction.power_w = network_estimate.time_s > 0 ? network_estimate.energy_j / network_estimate.time_s : 0;
  const double idle_w = profile.network_model.idle_w + options.machine.idle_offset_w;
  const double waiting =
      network_estimate.time_s > 0 ? std::max(0.0, 1 - network_estimate.gpu_s / network_estimate.time_s) : 0;
  prediction.layers = std::move(parts.layers);
  if (network_estimate.is_power_limited) stretch_layers_to_step(prediction, profile.network_model.idle_w);
  prediction.idle_j = idle_w * std::max(0.0, prediction.time_s - prediction.gpu_s);
  for (LayerPrediction& layer : prediction.layers) {
    layer.energy_j += options.machine.idle_offset_w * layer.time_s;
    prediction.flops += layer.flops;
  }
  prediction.unknown_operations = graph.unknown_operations;
  prediction.unmeasured_kinds.assign(parts.unmeasured_operation_kinds.begin(), parts.unmeasured_operation_kinds.end());
  prediction.notes = graph.notes;
  for (const UnknownOperation& unknown_operation : graph.unknown_operations)
    prediction.is_total_sound = prediction.is_total_sound && unknown_operation.has_lower_bound;
  set_prediction_intervals(prediction, profile, parts, waiting);
  return prediction;
}

}  // namespace joulemap::predict
