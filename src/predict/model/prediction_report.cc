// SPDX-License-Identifier: Apache-2.0
#include "predict/model/prediction_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "predict/graph/names.h"

namespace joulemap::predict {
namespace {

constexpr std::array<std::string_view, 6> kPrecisionNames = {"default", "fp32", "tf32", "fp16", "bf16", "amp-bf16"};
constexpr std::size_t kMaxSuggestedLayers = 5;

bool is_traced_training(const Graph& graph) {
  return std::any_of(graph.operations.begin(), graph.operations.end(),
                     [](const Operation& operation) { return operation.pass != Pass::forward; });
}

// Keeps the operations before the loss of a traced training step. Pass::forward alone does not identify them: copies
// and casts of the backward pass have it, too.
Graph keep_forward_operations(Graph graph) {
  std::vector<Operation>& operations = graph.operations;
  operations.erase(std::find_if(operations.begin(), operations.end(),
                                [](const Operation& operation) {
                                  return operation.pass != Pass::forward || operation.kind == Kind::loss;
                                }),
                   operations.end());
  return graph;
}

// Batch of the first operation on images. Empty for other networks, such as those for text, whose operations do not
// store the batch separately.
std::optional<std::int64_t> find_batch_size(const Graph& graph) {
  constexpr std::array<Kind, 5> kKindsWithBatch = {Kind::input, Kind::convolution, Kind::pooling, Kind::padding,
                                                   Kind::resize};
  for (const Operation& operation : graph.operations) {
    if (std::find(kKindsWithBatch.begin(), kKindsWithBatch.end(), operation.kind) != kKindsWithBatch.end())
      return operation.parameters.find("batch");
  }
  return std::nullopt;
}

Prediction predict_training_or_inference(const DeviceProfile& profile, const Graph& graph,
                                         const PredictOptions& options) {
  if (!options.training && is_traced_training(graph)) return predict(profile, keep_forward_operations(graph), options);
  return predict(profile, graph, options);
}

LifetimeEnergy compute_lifetime_energy(const DeviceProfile& profile, const Graph& graph,
                                       const PredictionRequest& request, PredictOptions options) {
  LifetimeEnergy life{.steps = request.steps, .inferences = request.inferences};
  const auto add = [&](bool training, std::int64_t count, std::optional<double>& energy_per_pass_j) {
    if (count == 0) return;
    options.training = training;
    const Prediction pass_prediction = predict_training_or_inference(profile, graph, options);
    const auto times = static_cast<double>(count);
    energy_per_pass_j = pass_prediction.energy_j;
    life.energy_j += times * pass_prediction.energy_j;
    life.low_j += times * pass_prediction.low_j;
    if (life.high_j)
      life.high_j =
          pass_prediction.high_j ? std::optional(*life.high_j + times * *pass_prediction.high_j) : std::nullopt;
  };
  add(true, request.steps, life.step_j);
  add(false, request.inferences, life.inference_j);
  return life;
}

Error unknown_layer_error(const Prediction& prediction, const std::string& layer) {
  std::vector<std::string_view> names;
  for (const LayerPrediction& layer_prediction : prediction.layers) names.push_back(layer_prediction.name);
  std::string similar_names;
  for (const std::string_view name : nearest_names(layer, names, kMaxSuggestedLayers)) {
    similar_names += fmt::format("{}{}", similar_names.empty() ? "" : ", ", quoted(name, 80));
  }
  return {ErrorCode::usage, fmt::format("there is no layer {}", quoted(layer, 80)), "similar names: " + similar_names};
}

Result<std::string> choose_explained_layer(const Prediction& prediction, const std::string& requested_layer) {
  const std::vector<LayerPrediction>& layers = prediction.layers;
  if (layers.empty()) return Error{ErrorCode::malformed, "there is no layer to explain", ""};
  if (requested_layer.empty()) {
    return std::max_element(layers.begin(), layers.end(),
                            [](const LayerPrediction& a, const LayerPrediction& b) { return a.energy_j < b.energy_j; })
        ->name;
  }
  const bool is_known_layer = std::any_of(layers.begin(), layers.end(),
                                          [&](const LayerPrediction& layer) { return layer.name == requested_layer; });
  if (!is_known_layer) return unknown_layer_error(prediction, requested_layer);
  return requested_layer;
}

// "'aten.foo', 'aten.bar' and 3 more".
std::string format_unknown_operations(const Prediction& prediction) {
  constexpr std::size_t kMaxNames = 4;
  std::vector<std::string> names;
  for (const UnknownOperation& unknown_operation : prediction.unknown_operations) {
    if (std::find(names.begin(), names.end(), unknown_operation.source) == names.end())
      names.push_back(unknown_operation.source);
  }
  std::string text;
  for (std::size_t index = 0; index < std::min(kMaxNames, names.size()); ++index) {
    text += fmt::format("{}{}", index == 0 ? "" : ", ", quoted(names[index], 60));
  }
  if (names.size() > kMaxNames) text += fmt::format(" and {} more", names.size() - kMaxNames);
  return text;
}

Diagnostics prediction_diagnostics(const Prediction& prediction) {
  Diagnostics diagnostics;
  const auto unbounded_count = static_cast<std::uint64_t>(
      std::count_if(prediction.unknown_operations.begin(), prediction.unknown_operations.end(),
                    [](const UnknownOperation& unknown_operation) { return !unknown_operation.has_lower_bound; }));
  const std::uint64_t bounded_count = prediction.unknown_operations.size() - unbounded_count;
  if (unbounded_count > 0) {
    diagnostics.add({"unbounded_operations", unbounded_count,
                     "operations of unknown size are not in the total, which is too low",
                     "set the shapes of inputs with --input NAME=SHAPE, or export the model with static shapes"});
  }
  if (bounded_count > 0) {
    diagnostics.add(
        {"unknown_operations", bounded_count,
         fmt::format("unknown operations: {}; each counts as a copy of its tensors, so the total is a lower bound",
                     format_unknown_operations(prediction)),
         "export the model without such operations, or measure it: joulemap record"});
  }
  if (!prediction.unmeasured_kinds.empty()) {
    std::string kinds;
    for (const std::string& kind : prediction.unmeasured_kinds) kinds += (kinds.empty() ? "" : ", ") + kind;
    diagnostics.add(
        {"unmeasured_kinds", prediction.unmeasured_kinds.size(),
         fmt::format("operations of these kinds were not measured on {}: {}; a physical model alone predicts "
                     "them, and intervals span a factor of three",
                     prediction.device, kinds),
         "make a profile for --profile: python -m joulemap collect, then joulemap model fit"});
  }
  if (!prediction.has_fitted_profile) {
    diagnostics.add(
        {"datasheet_only", 1,
         fmt::format("nothing was measured on {}: times and energies are scaled from another GPU by datasheet "
                     "values, and intervals are wide",
                     prediction.device),
         "make a profile for --profile: python -m joulemap collect on such a GPU, then joulemap model fit"});
  }
  return diagnostics;
}

Error traced_precision_is_fixed_error(Precision precision) {
  return {ErrorCode::usage,
          fmt::format("a list of traced operations has fixed types: --precision {} does not apply", name_of(precision)),
          "list its operations again: joulemap.list_operations(model, inputs, precision=\"tf32\"), or "
          "autocast=torch.bfloat16"};
}

MachineCorrection make_machine_correction(const DeviceProfile& profile, const PredictionRequest& request) {
  MachineCorrection machine{.host_factor = request.host_factor};
  if (request.idle_w) machine.idle_offset_w = *request.idle_w - profile.operation_model.datasheet.idle_w;
  machine.idle_offset_w = std::max(machine.idle_offset_w, -profile.network_model.idle_w);
  return machine;
}

}  // namespace

std::string_view name_of(Precision precision) { return kPrecisionNames.at(static_cast<std::size_t>(precision)); }

std::string_view name_of(ExecutionMode mode) { return mode == ExecutionMode::compiled ? "compiled" : "eager"; }

std::optional<Precision> precision_from_name(std::string_view name) {
  const auto* matching_name = std::find(kPrecisionNames.begin(), kPrecisionNames.end(), name);
  if (matching_name == kPrecisionNames.end()) return std::nullopt;
  return static_cast<Precision>(matching_name - kPrecisionNames.begin());
}

std::string lower_bound_warning(const Prediction& prediction) {
  if (!is_lower_bound(prediction)) return {};
  const std::size_t count = prediction.unknown_operations.size();
  return fmt::format("the total is a lower bound: {} operation{} unknown: {}", count, count == 1 ? " is" : "s are",
                     format_unknown_operations(prediction));
}

Result<PredictionReport> report_prediction(const DeviceProfile& profile, Graph graph,
                                           const PredictionRequest& request) {
  if (graph.operations.empty() && graph.unknown_operations.empty()) {
    return Error{ErrorCode::malformed, "the graph contains no operation: there is nothing to predict", ""};
  }
  const double limit_w = profile.operation_model.datasheet.power_limit_w;
  if (request.idle_w && *request.idle_w >= limit_w) {
    return Error{ErrorCode::usage, fmt::format("--idle-w {:g} is not an idle power", *request.idle_w),
                 fmt::format("{} uses {:g} W at most", profile.device, limit_w)};
  }
  const bool is_traced = graph.format == "torch";
  if (is_traced && request.precision != Precision::framework_default)
    return traced_precision_is_fixed_error(request.precision);
  if (!is_traced) graph = apply_precision(std::move(graph), request.precision);
  const PredictOptions options{.training = request.training.value_or(is_traced_training(graph)),
                               .optimizer = request.optimizer,
                               .mode = request.mode,
                               .machine = make_machine_correction(profile, request)};
  PredictionReport report;
  report.model = graph.name;
  report.format = graph.format;
  report.batch = request.batch ? request.batch : graph.batch ? graph.batch : find_batch_size(graph);
  report.precision = is_traced ? "traced" : name_of(request.precision);
  report.mode = request.mode;
  if (options.training) report.optimizer = request.optimizer;
  report.tariff = request.tariff;
  report.prediction = predict_training_or_inference(profile, graph, options);
  report.diagnostics = prediction_diagnostics(report.prediction);
  if (request.steps > 0 || request.inferences > 0)
    report.lifetime = compute_lifetime_energy(profile, graph, request, options);
  if (request.explained_layer) {
    Result<std::string> layer = choose_explained_layer(report.prediction, *request.explained_layer);
    if (!layer) return std::move(layer).error();
    report.explained_layer = std::move(*layer);
    const bool forward = !options.training && is_traced_training(graph);
    report.explanation = explain_layer(profile, forward ? keep_forward_operations(std::move(graph)) : graph, options,
                                       report.explained_layer);
  }
  return report;
}

}  // namespace joulemap::predict
