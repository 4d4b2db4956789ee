// SPDX-License-Identifier: Apache-2.0
//
// What `joulemap predict` tells: the prediction itself, what it was asked for, what a lifetime of training and inference
// comes to, and what speaks against it. Plain data; the making of it is pure.
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
std::string_view name_of(Mode mode);
std::optional<Precision> precision_of(std::string_view name);  // "amp-bf16"

struct PredictionRequest {
  // Nothing: training where the graph is a traced training step, else inference.
  std::optional<bool> training;
  std::string optimizer = "adamw";
  Mode mode = Mode::eager;
  Precision precision = Precision::default_;
  double host_factor = 1;
  std::optional<double> idle_w;       // what the GPU draws at rest; else the mean of those measured
  std::optional<std::int64_t> batch;  // that was asked for; else what the graph tells, if it does
  std::int64_t steps = 0;             // of training, in a lifetime
  std::int64_t inferences = 0;        // passes of the same batch, in a lifetime
  Tariff tariff;
  std::optional<std::string> explain;  // a layer's name; empty: the one that draws most
};

// Training and using it: so many steps and passes. Errors of the two are taken to go the same way.
struct Lifetime {
  std::int64_t steps = 0;
  std::int64_t inferences = 0;
  std::optional<double> step_j = {};  // nothing where no steps were asked for
  std::optional<double> inference_j = {};
  double energy_j = 0;
  double low_j = 0;
  std::optional<double> high_j = 0;  // nothing where operations are not known
};

// One line for who reads nothing else: which operations are not known, and what that makes of the total. Empty where all are
// known.
std::string lower_bound_warning(const Prediction& prediction);

struct PredictionReport {
  std::string model;   // the graph's own name; empty where it has none
  std::string format;  // "onnx", "keras", "torch"
  std::optional<std::int64_t> batch;
  std::string precision;  // of a traced list "traced": it says its types itself
  Mode mode = Mode::eager;
  std::string optimizer;  // of training, else empty
  Prediction prediction;
  Tariff tariff;
  std::optional<Lifetime> lifetime;
  std::string explained;  // which layer
  std::vector<Explanation> explanation;
  Diagnostics diagnostics;
};

// Fails where nothing can be predicted: a graph without operations, a layer that is not there, types asked of a list that
// has its own. A total that would be too low is no failure here: prediction.is_total_sound says so.
Result<PredictionReport> report_prediction(const Profile& profile, Graph graph, const PredictionRequest& request);

}  // namespace joulemap::predict
