// SPDX-License-Identifier: Apache-2.0
//
// Predicts the energy of a network before it runs: takes a Graph and a DeviceProfile, returns joules by layer with
// intervals. Pure.
//
//   Prediction prediction = predict(profile, graph, {.training = true});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "predict/graph/graph.h"
#include "predict/model/device_profile.h"

namespace joulemap::predict {

enum class ExecutionMode : std::uint8_t {
  eager,     // one kernel or more for each operation, as PyTorch runs a module
  compiled,  // neighbouring element-wise operations fused into one kernel, as torch.compile does
};
// Numeric type of the computation. `framework_default`: PyTorch's default, TF32 in convolutions and recurrent layers,
// else fp32. `amp_bf16`: autocast to bf16.
enum class Precision : std::uint8_t { framework_default, fp32, tf32, fp16, bf16, amp_bf16 };

struct PredictOptions {
  bool training = false;            // one step: forward, loss, backward, optimizer
  std::string optimizer = "adamw";  // sgd momentum adam adamw rmsprop
  ExecutionMode mode = ExecutionMode::eager;
  MachineCorrection machine;
};

struct LayerPrediction {
  std::string name;  // name of the layer
  std::string op;    // source of its main operation (Operation::source)
  double energy_j = 0;
  double low_j = 0;
  std::optional<double> high_j = 0;  // empty if it contains an unknown operation
  double time_s = 0;                 // GPU time, s
  // Shown by --explain.
  double flops = 0;
  double bytes = 0;
  double physical_j = 0;        // J by physics alone, without kriging and trees
  double min_trust_factor = 0;  // least of its operations; 1: within the measured range
};

struct Prediction {
  std::string device;
  bool has_fitted_profile = true;  // false: scaled from a datasheet
  bool training = false;
  double energy_j = 0;
  double low_j = 0;
  std::optional<double> high_j = 0;  // empty if an operation is unknown: the total is a lower bound
  double time_s = 0;
  double gpu_s = 0;
  double host_s = 0;
  double power_w = 0;
  double flops = 0;
  double idle_j = 0;                    // idle energy while the GPU waits for the host: part of energy_j, of no layer
  std::vector<LayerPrediction> layers;  // in graph order; the sum of their energy_j and idle_j is energy_j
  std::vector<UnknownOperation> unknown_operations;
  std::vector<std::string> unmeasured_kinds;  // kinds that were not measured: physics alone
  bool is_total_sound = true;                 // false if the size of an operation is unknown: the total is too low
  std::vector<std::string> notes;
};

// An unknown operation counts as a copy of its tensors and may use any amount more, so that the total is a lower bound.
inline bool is_lower_bound(const Prediction& prediction) { return !prediction.unknown_operations.empty(); }

Prediction predict(const DeviceProfile& profile, const Graph& graph, const PredictOptions& options);

// The operations that run: for training the whole step, for inference the graph without dropout and input copies; fused
// if compiled.
std::vector<Operation> list_executed_operations(const Graph& graph, const PredictOptions& options);
// Name of the layer that the operation belongs to; its source if it has no layer.
const std::string& layer_name_of(const Operation& operation);

// Sets the type in which each operation runs at this precision; autocast also inserts casts. Operations that the file
// stores in 16 bits keep their type.
Graph apply_precision(Graph graph, Precision precision);

}  // namespace joulemap::predict
