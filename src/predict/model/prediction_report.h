// SPDX-License-Identifier: Apache-2.0
//
// The result of `joulemap predict`: the prediction, the request, the energy of all requested training steps and
// inferences, and diagnostics. Plain data; its functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/diagnostics.h"
#include "predict/model/explanation.h"
#include "predict/model/footprint.h"
#include "predict/model/predictor.h"

namespace joulemap::predict {

std::string_view name_of(Precision precision);
std::string_view name_of(ExecutionMode mode);
std::optional<Precision> precision_from_name(std::string_view name);  // "amp-bf16"

struct PredictionRequest {
  // Empty: training if the graph is a traced training step, else inference.
  std::optional<bool> training;
  std::string optimizer = "adamw";
  ExecutionMode mode = ExecutionMode::eager;
  Precision precision = Precision::framework_default;
  double host_factor = 1;
  std::optional<double> idle_w;       // idle power of the GPU, W; empty: mean of the measured GPUs
  std::optional<std::int64_t> batch;  // batch to report; empty: that of the graph, if it has one
  std::int64_t steps = 0;             // number of training steps for LifetimeEnergy
  std::int64_t inferences = 0;        // number of forward passes of the same batch for LifetimeEnergy
  EnergyTariff tariff;
  std::optional<std::string> explained_layer;  // layer to explain; empty text: the layer with the most energy
};

// Energy of a number of training steps and inferences. The interval assumes that errors of all steps are fully
// correlated.
struct LifetimeEnergy {
  std::int64_t steps = 0;
  std::int64_t inferences = 0;
  std::optional<double> step_j = {};  // J of one step; empty if no steps were requested
  std::optional<double> inference_j = {};
  double energy_j = 0;
  double low_j = 0;
  std::optional<double> high_j = 0;  // empty if an operation is unknown
};

// A one-line warning that the total is a lower bound, with the names of unknown operations. Empty if all operations are
// known.
std::string lower_bound_warning(const Prediction& prediction);

struct PredictionReport {
  std::string model;   // name in the graph; may be empty
  std::string format;  // "onnx", "keras", "torch"
  std::optional<std::int64_t> batch;
  std::string precision;  // "traced" for a traced list, which contains its own types
  ExecutionMode mode = ExecutionMode::eager;
  std::string optimizer;  // empty for inference
  Prediction prediction;
  EnergyTariff tariff;
  std::optional<LifetimeEnergy> lifetime;
  std::string explained_layer;  // name of the explained layer
  std::vector<OperationExplanation> explanation;
  Diagnostics diagnostics;
};

// Fails if the graph has no operations, the layer to explain does not exist, the idle power is above the power limit,
// or a precision is requested for a traced list, which has fixed types. A total that is too low does not fail:
// prediction.is_total_sound is false.
Result<PredictionReport> report_prediction(const DeviceProfile& profile, Graph graph, const PredictionRequest& request);

}  // namespace joulemap::predict
