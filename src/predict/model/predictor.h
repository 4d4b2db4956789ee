// SPDX-License-Identifier: Apache-2.0
//
// The energy of a network before it runs: a Graph and a Profile in, joules by layer with intervals out. Pure.
//
//   Prediction prediction = predict(profile, graph, {.training = true});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "predict/graph/graph.h"
#include "predict/model/profile.h"

namespace joulemap::predict {

enum class Mode : std::uint8_t {
  eager,     // each operation by itself, as PyTorch runs a module
  compiled,  // neighbours that work element by element are one kernel, as torch.compile makes them
};
// What numbers are computed in: `default_` is what PyTorch does by itself (TF32 in convolutions only), `amp_bf16` autocast.
enum class Precision : std::uint8_t { default_, fp32, tf32, fp16, bf16, amp_bf16 };

struct PredictOptions {
  bool training = false;            // a step: forward, loss, backward, optimizer
  std::string optimizer = "adamw";  // sgd momentum adam adamw rmsprop
  Mode mode = Mode::eager;
  Machine machine;
};

struct LayerPrediction {
  std::string name;  // the layer's
  std::string op;    // what the graph calls its main operation
  double energy_j = 0;
  double low_j = 0;
  std::optional<double> high_j = 0;  // nothing where an operation in it is not known
  double time_s = 0;                 // on the GPU
  // What --explain shows.
  double flops = 0;
  double bytes = 0;
  double physical_j = 0;  // by physics alone
  double trust = 0;       // 1: within what was measured
};

struct Prediction {
  std::string device;
  bool fitted = true;  // else scaled from a datasheet
  bool training = false;
  double energy_j = 0;
  double low_j = 0;
  std::optional<double> high_j = 0;  // nothing where operations are not known: the total is a lower bound
  double time_s = 0;
  double gpu_s = 0;
  double host_s = 0;
  double power_w = 0;
  double flops = 0;
  double idle_j = 0;                    // drawn while the GPU waits for the host: in energy_j, in no layer
  std::vector<LayerPrediction> layers;  // in the order of the graph; their energy_j and idle_j sum to energy_j
  std::vector<UnknownOperation> unknown;
  std::vector<std::string> unmeasured;  // kinds of operations that nothing was fitted to: by physics alone
  bool is_total_sound = true;  // false where an operation could not even be bounded: the total is too low
  std::vector<std::string> notes;
};

// A total with operations in it that are not known: they count as copies, and may use any amount more.
inline bool is_lower_bound(const Prediction& prediction) { return !prediction.unknown.empty(); }

Prediction predict(const Profile& profile, const Graph& graph, const PredictOptions& options);

// What runs: of training the whole step, of inference without what it leaves out, compiled where that is asked for.
std::vector<Operation> operations_of(const Graph& graph, const PredictOptions& options);
// Whose layer an operation is.
const std::string& layer_name_of(const Operation& operation);

// Forward operations in the types that a run computes in. Graphs say fp32 where they say nothing.
Graph with_precision(Graph graph, Precision precision);

}  // namespace joulemap::predict
