// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/recurrent.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace joulemap::predict {
namespace {

// Latency of a time step, in seconds. Standard algorithm: a product and the gates, launched in sequence. Persistent: a
// grid synchronization within one kernel.
constexpr double kStandardStepLatency_s = 7e-6;
constexpr double kPersistentStepLatency_s = 2.5e-6;
// Latency of a backward step relative to a forward one: it takes more kernels.
constexpr double kBackwardTimeStepFactor = 1.4;
// Latency of each further layer relative to the first. Layers of one direction overlap: a layer's step needs only the
// same step of the layer below.
constexpr double kOverlappedLayerFraction = 0.5;

// Hidden widths up to which PyTorch requests cuDNN's persistent-small algorithm, which keeps all weights in registers.
struct SmallHiddenWidths {
  double forward;
  double backward;
};
constexpr SmallHiddenWidths kMaxSmallPlainWidths = {384, 256};
constexpr SmallHiddenWidths kMaxSmallGatedWidths = {192, 128};
constexpr double kMaxPersistentHiddenWidth = 1024;
constexpr double kMaxPersistentBatch = 128;

double gate_count(std::string_view operation_form) {
  return operation_form == "lstm" ? 4 : operation_form == "gru" ? 3 : 1;
}

bool is_multiple_of(double size, double divisor) { return std::fmod(size, divisor) == 0; }

bool uses_persistent_kernel(const Operation& operation, const RecurrentSizes& sizes) {
  if (operation.dtype != Dtype::fp16 || sizes.layer_count > 1 || sizes.direction_count > 1 || operation.form == "gru")
    return false;
  if (sizes.hidden_width > kMaxPersistentHiddenWidth || !is_multiple_of(sizes.hidden_width, 128) ||
      !is_multiple_of(sizes.input_width, 128))
    return false;
  if (sizes.batch > kMaxPersistentBatch || !is_multiple_of(sizes.batch, 8)) return false;
  return operation.form == "lstm" || sizes.batch < 96 || sizes.hidden_width < 896;
}

// Input width of the first layer, or of any other.
double layer_input_width(const RecurrentSizes& sizes, bool is_first) {
  return is_first ? sizes.input_width : sizes.direction_count * sizes.output_width;
}

}  // namespace

RecurrentSizes recurrent_sizes(const Operation& operation) {
  const OperationParameters& p = operation.parameters;
  // Sizes are at least 1: operation lists come from files, where a parameter may be 0 or negative.
  const auto size = [&p](std::string_view name) { return std::max(1.0, static_cast<double>(p.get(name, 1))); };
  RecurrentSizes sizes;
  sizes.batch = size("batch");
  sizes.time_steps = size("steps");
  sizes.input_width = size("in");
  sizes.hidden_width = size("hidden");
  sizes.projection_width = static_cast<double>(p.get("projection", 0));
  sizes.output_width = sizes.projection_width > 0 ? sizes.projection_width : sizes.hidden_width;
  sizes.gate_count = gate_count(operation.form);
  sizes.layer_count = size("layers");
  sizes.direction_count = size("directions");
  sizes.has_bias = p.get("bias", 1) != 0;
  return sizes;
}

RecurrentWork compute_recurrent_work(const RecurrentSizes& sizes) {
  const double rows = sizes.batch * sizes.time_steps;
  const double gate_width = sizes.gate_count * sizes.hidden_width;
  const double total_input_width =
      layer_input_width(sizes, true) + (sizes.layer_count - 1) * layer_input_width(sizes, false);
  const double matrices =
      sizes.direction_count * (gate_width * (total_input_width + sizes.layer_count * sizes.output_width) +
                               sizes.layer_count * sizes.hidden_width * sizes.projection_width);
  RecurrentWork work;
  work.gates = sizes.direction_count * sizes.layer_count * rows * gate_width;
  work.flops = 2 * rows * matrices + work.gates;
  work.inputs = rows * sizes.input_width;
  work.outputs = rows * sizes.direction_count * sizes.output_width;
  // PyTorch has one bias for the input and one for the state.
  work.weights = matrices + (sizes.has_bias ? 2 * sizes.direction_count * sizes.layer_count * gate_width : 0);
  work.gradient_state_elements = work.gates + sizes.direction_count * sizes.layer_count * rows * sizes.hidden_width;
  work.inter_layer_elements = (sizes.layer_count - 1) * work.outputs;
  return work;
}

std::vector<MatrixProduct> recurrent_matrix_products(const RecurrentSizes& sizes, Pass pass) {
  const double rows = sizes.batch * sizes.time_steps;
  const double gate_width = sizes.gate_count * sizes.hidden_width;
  std::vector<MatrixProduct> products;
  for (const bool is_first : {true, false}) {
    const double layers = is_first ? 1 : sizes.layer_count - 1;
    if (layers < 1) continue;
    const double width = layer_input_width(sizes, is_first);
    const double count = sizes.direction_count * layers;
    if (pass == Pass::forward) {
      products.push_back({rows, gate_width, width, count});
      continue;
    }
    products.push_back({gate_width, width + sizes.output_width, rows, count});
    products.push_back({rows, width, gate_width, count});
  }
  return products;
}

MatrixProduct recurrent_step_product(const RecurrentSizes& sizes, Pass pass) {
  const double gate_width = sizes.gate_count * sizes.hidden_width;
  if (pass == Pass::forward) return {sizes.batch, gate_width, sizes.output_width, sizes.direction_count};
  return {sizes.batch, sizes.output_width, gate_width, sizes.direction_count};
}

double count_recurrent_state_weights(const RecurrentSizes& sizes) {
  return sizes.direction_count * sizes.hidden_width * (sizes.gate_count * sizes.output_width + sizes.projection_width);
}

std::string_view name_of(RecurrentAlgorithm algorithm) {
  constexpr std::array<std::string_view, 3> kNames = {"standard", "persistent", "persistent-small"};
  return kNames.at(static_cast<std::size_t>(algorithm));
}

RecurrentAlgorithm recurrent_algorithm(const Operation& operation) {
  const RecurrentSizes sizes = recurrent_sizes(operation);
  if (sizes.projection_width > 0) return RecurrentAlgorithm::standard;
  const SmallHiddenWidths& small = sizes.gate_count == 1 ? kMaxSmallPlainWidths : kMaxSmallGatedWidths;
  if (sizes.hidden_width <= (operation.pass == Pass::forward ? small.forward : small.backward)) {
    return RecurrentAlgorithm::persistent_small;
  }
  return uses_persistent_kernel(operation, sizes) ? RecurrentAlgorithm::persistent : RecurrentAlgorithm::standard;
}

double recurrent_kernels(const Operation& operation) {
  const RecurrentSizes sizes = recurrent_sizes(operation);
  const double layers = sizes.layer_count * sizes.direction_count;
  const double at_once = operation.pass == Pass::forward ? layers : 2 * layers;
  if (recurrent_algorithm(operation) != RecurrentAlgorithm::standard) return at_once + layers;
  return at_once + 2 * layers * sizes.time_steps;
}

double recurrent_latency_s(const Operation& operation) {
  const RecurrentSizes sizes = recurrent_sizes(operation);
  const bool overlaps = sizes.direction_count == 1 && recurrent_algorithm(operation) == RecurrentAlgorithm::standard;
  const double layers = overlaps ? 1 + kOverlappedLayerFraction * (sizes.layer_count - 1) : sizes.layer_count;
  const double step_s = recurrent_algorithm(operation) == RecurrentAlgorithm::standard ? kStandardStepLatency_s
                                                                                       : kPersistentStepLatency_s;
  return sizes.time_steps * layers * step_s * (operation.pass == Pass::forward ? 1 : kBackwardTimeStepFactor);
}

bool is_next_recurrent_layer(const Operation& stack, const Operation& next_layer) {
  if (stack.kind != Kind::recurrent || next_layer.kind != Kind::recurrent || stack.form != next_layer.form)
    return false;
  if (stack.dtype != next_layer.dtype || stack.pass != next_layer.pass || stack.count != next_layer.count) return false;
  for (const std::string_view name : {"batch", "steps", "hidden", "directions", "bias", "projection"}) {
    if (stack.parameters.find(name) != next_layer.parameters.find(name)) return false;
  }
  const RecurrentSizes sizes = recurrent_sizes(stack);
  return recurrent_sizes(next_layer).input_width == sizes.direction_count * sizes.output_width;
}

void append_recurrent_layer(Operation& stack, const Operation& next_layer) {
  stack.parameters.set("layers", stack.parameters.get("layers", 1) + next_layer.parameters.get("layers", 1));
  if (stack.layer != next_layer.layer) stack.layer += "+" + next_layer.layer;
}

}  // namespace joulemap::predict
