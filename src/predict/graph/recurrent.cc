// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/recurrent.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace joulemap::predict {
namespace {

// Latency of a time step, in seconds. Standard algorithm: a product and the gates, launched in sequence. Persistent: a
// grid synchronization within one kernel.
constexpr double kStandardStep_s = 7e-6;
constexpr double kPersistentStep_s = 2.5e-6;
// Latency of a backward step relative to a forward one: it takes more kernels.
constexpr double kBackwardStep = 1.4;
// Latency of each further layer relative to the first. Layers of one direction overlap: a layer's step needs only the
// same step of the layer below.
constexpr double kOverlappedLayer = 0.5;

// Hidden widths up to which PyTorch requests cuDNN's persistent-small algorithm, which keeps all weights in registers.
struct SmallWidths {
  double forward;
  double backward;
};
constexpr SmallWidths kSmallPlain = {384, 256};
constexpr SmallWidths kSmallGated = {192, 128};
constexpr double kMaxPersistentWidth = 1024;
constexpr double kMaxPersistentBatch = 128;

double gates_of(std::string_view form) { return form == "lstm" ? 4 : form == "gru" ? 3 : 1; }

bool is_multiple(double size, double of) { return std::fmod(size, of) == 0; }

bool is_persistent(const Operation& operation, const RecurrentSizes& sizes) {
  if (operation.dtype != Dtype::fp16 || sizes.layers > 1 || sizes.directions > 1 || operation.form == "gru")
    return false;
  if (sizes.hidden > kMaxPersistentWidth || !is_multiple(sizes.hidden, 128) || !is_multiple(sizes.in, 128))
    return false;
  if (sizes.batch > kMaxPersistentBatch || !is_multiple(sizes.batch, 8)) return false;
  return operation.form == "lstm" || sizes.batch < 96 || sizes.hidden < 896;
}

// Input width of the first layer, or of any other.
double width_into(const RecurrentSizes& sizes, bool is_first) {
  return is_first ? sizes.in : sizes.directions * sizes.output;
}

}  // namespace

RecurrentSizes recurrent_sizes(const Operation& operation) {
  const Parameters& p = operation.parameters;
  // Sizes are at least 1: operation lists come from files, where a parameter may be 0 or negative.
  const auto size = [&p](std::string_view name) { return std::max(1.0, static_cast<double>(p.get(name, 1))); };
  RecurrentSizes sizes;
  sizes.batch = size("batch");
  sizes.steps = size("steps");
  sizes.in = size("in");
  sizes.hidden = size("hidden");
  sizes.projection = static_cast<double>(p.get("projection", 0));
  sizes.output = sizes.projection > 0 ? sizes.projection : sizes.hidden;
  sizes.gates = gates_of(operation.form);
  sizes.layers = size("layers");
  sizes.directions = size("directions");
  sizes.has_bias = p.get("bias", 1) != 0;
  return sizes;
}

RecurrentWork recurrent_work(const RecurrentSizes& sizes) {
  const double rows = sizes.batch * sizes.steps;
  const double gates = sizes.gates * sizes.hidden;
  const double read = width_into(sizes, true) + (sizes.layers - 1) * width_into(sizes, false);
  const double matrices = sizes.directions * (gates * (read + sizes.layers * sizes.output) +
                                              sizes.layers * sizes.hidden * sizes.projection);
  RecurrentWork work;
  work.gates = sizes.directions * sizes.layers * rows * gates;
  work.flops = 2 * rows * matrices + work.gates;
  work.inputs = rows * sizes.in;
  work.outputs = rows * sizes.directions * sizes.output;
  // PyTorch has one bias for the input and one for the state.
  work.weights = matrices + (sizes.has_bias ? 2 * sizes.directions * sizes.layers * gates : 0);
  work.states = work.gates + sizes.directions * sizes.layers * rows * sizes.hidden;
  work.between_layers = (sizes.layers - 1) * work.outputs;
  return work;
}

std::vector<MatrixProduct> recurrent_products(const RecurrentSizes& sizes, Pass pass) {
  const double rows = sizes.batch * sizes.steps;
  const double gates = sizes.gates * sizes.hidden;
  std::vector<MatrixProduct> products;
  for (const bool is_first : {true, false}) {
    const double layers = is_first ? 1 : sizes.layers - 1;
    if (layers < 1) continue;
    const double width = width_into(sizes, is_first);
    const double count = sizes.directions * layers;
    if (pass == Pass::forward) {
      products.push_back({rows, gates, width, count});
      continue;
    }
    products.push_back({gates, width + sizes.output, rows, count});
    products.push_back({rows, width, gates, count});
  }
  return products;
}

MatrixProduct recurrent_step_product(const RecurrentSizes& sizes, Pass pass) {
  const double gates = sizes.gates * sizes.hidden;
  if (pass == Pass::forward) return {sizes.batch, gates, sizes.output, sizes.directions};
  return {sizes.batch, sizes.output, gates, sizes.directions};
}

double recurrent_state_weights(const RecurrentSizes& sizes) {
  return sizes.directions * sizes.hidden * (sizes.gates * sizes.output + sizes.projection);
}

std::string_view name_of(RecurrentAlgorithm algorithm) {
  constexpr std::array<std::string_view, 3> kNames = {"standard", "persistent", "persistent-small"};
  return kNames.at(static_cast<std::size_t>(algorithm));
}

RecurrentAlgorithm recurrent_algorithm(const Operation& operation) {
  const RecurrentSizes sizes = recurrent_sizes(operation);
  if (sizes.projection > 0) return RecurrentAlgorithm::standard;
  const SmallWidths& small = sizes.gates == 1 ? kSmallPlain : kSmallGated;
  if (sizes.hidden <= (operation.pass == Pass::forward ? small.forward : small.backward)) {
    return RecurrentAlgorithm::persistent_small;
  }
  return is_persistent(operation, sizes) ? RecurrentAlgorithm::persistent : RecurrentAlgorithm::standard;
}

double recurrent_kernels(const Operation& operation) {
  const RecurrentSizes sizes = recurrent_sizes(operation);
  const double layers = sizes.layers * sizes.directions;
  const double at_once = operation.pass == Pass::forward ? layers : 2 * layers;
  if (recurrent_algorithm(operation) != RecurrentAlgorithm::standard) return at_once + layers;
  return at_once + 2 * layers * sizes.steps;
}

double recurrent_latency_s(const Operation& operation) {
  const RecurrentSizes sizes = recurrent_sizes(operation);
  const bool overlaps = sizes.directions == 1 && recurrent_algorithm(operation) == RecurrentAlgorithm::standard;
  const double layers = overlaps ? 1 + kOverlappedLayer * (sizes.layers - 1) : sizes.layers;
  const double step_s =
      recurrent_algorithm(operation) == RecurrentAlgorithm::standard ? kStandardStep_s : kPersistentStep_s;
  return sizes.steps * layers * step_s * (operation.pass == Pass::forward ? 1 : kBackwardStep);
}

bool is_next_layer(const Operation& stack, const Operation& next) {
  if (stack.kind != Kind::recurrent || next.kind != Kind::recurrent || stack.form != next.form) return false;
  if (stack.dtype != next.dtype || stack.pass != next.pass || stack.count != next.count) return false;
  for (const std::string_view name : {"batch", "steps", "hidden", "directions", "bias", "projection"}) {
    if (stack.parameters.find(name) != next.parameters.find(name)) return false;
  }
  const RecurrentSizes sizes = recurrent_sizes(stack);
  return recurrent_sizes(next).in == sizes.directions * sizes.output;
}

void add_layer(Operation& stack, const Operation& next) {
  stack.parameters.set("layers", stack.parameters.get("layers", 1) + next.parameters.get("layers", 1));
  if (stack.layer != next.layer) stack.layer += "+" + next.layer;
}

}  // namespace joulemap::predict
