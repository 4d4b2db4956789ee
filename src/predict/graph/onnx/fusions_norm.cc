// SPDX-License-Identifier: Apache-2.0
//
// Fuses norms written as means and roots, and products whose bias is a separate addition.
#include <algorithm>

#include "predict/graph/onnx/fusions.h"

namespace joulemap::predict::onnx {
namespace {

int output_of(Program& program, int step) { return step_at(program, step).outputs[0]; }

// Whether the step computes x * x or x ** 2.
bool is_square(Program& program, int step, int x) {
  const bool power = is_step(program, step, "Pow") && constant_scalar(program, step_at(program, step).inputs[1]) == 2;
  const bool product =
      is_step(program, step, "Mul") && step_at(program, step).inputs[0] == step_at(program, step).inputs[1];
  return (power || product) && step_at(program, step).inputs[0] == x;
}

// Matches x / sqrt(mean + epsilon) in its usual forms, starting at the mean. Returns the steps; empty if it does not
// match.
std::vector<int> divided_by_root(Program& program, int mean, int x) {
  std::vector<int> parts = {mean};
  const int sum = only_consumer(program, output_of(program, mean));
  if (!is_step(program, sum, "Add") || scaled_input(program, sum) == kNone) return {};
  parts.push_back(sum);
  const int root = only_consumer(program, output_of(program, sum));
  if (!is_step(program, root, "Sqrt")) return {};
  parts.push_back(root);
  int next = only_consumer(program, output_of(program, root));
  const bool inverts =
      is_step(program, next, "Reciprocal") ||
      (is_step(program, next, "Div") && constant_scalar(program, step_at(program, next).inputs[0]) == 1);
  if (inverts) {
    parts.push_back(next);
    next = only_consumer(program, output_of(program, next));
  }
  const bool ends = is_step(program, next, inverts ? "Mul" : "Div") &&
                    other_input(program, next, output_of(program, parts.back())) == x;
  if (!ends) return {};
  parts.push_back(next);
  return parts;
}

// Appends a following scale and offset by constants, which are weights of the norm.
void add_affine(Program& program, std::vector<int>& parts, std::vector<int>& inputs) {
  for (const std::string_view type : {"Mul", "Add"}) {
    int next = only_consumer(program, output_of(program, parts.back()));
    std::vector<int> skipped;
    if (is_step(program, next, "Cast")) {
      skipped.push_back(next);
      next = only_consumer(program, output_of(program, next));
    }
    if (!is_step(program, next, type)) return;
    const int before = output_of(program, skipped.empty() ? parts.back() : skipped.back());
    const int weight = other_input(program, next, before);
    if (weight == kNone || !value_at(program, weight).constant) return;
    parts.insert(parts.end(), skipped.begin(), skipped.end());
    parts.push_back(next);
    inputs.push_back(weight);
  }
}

std::int64_t normed_by(Program& program, int mean) {
  const ProgramStep& step = step_at(program, mean);
  const std::int64_t left = elements_of(*value_at(program, step.outputs[0]).sizes);
  return left == 0 ? 0 : elements_of(*value_at(program, step.inputs[0]).sizes) / left;
}

bool fuse_layer_norm(Program& program, int mean) {
  const int x = step_at(program, mean).inputs[0];
  const int difference = only_consumer(program, output_of(program, mean));
  if (!is_step(program, difference, "Sub") || step_at(program, difference).inputs[0] != x) return false;
  const int centred = output_of(program, difference);
  for (const int consumer : value_at(program, centred).consumers) {
    if (!is_square(program, consumer, centred)) continue;
    const int variance = only_consumer(program, output_of(program, consumer));
    if (!is_step(program, variance, "ReduceMean")) continue;
    std::vector<int> parts = divided_by_root(program, variance, centred);
    if (parts.empty()) continue;
    const std::int64_t normalized_count = normed_by(program, mean);
    std::vector<int> inputs = {x};
    parts.insert(parts.end() - 1, {mean, difference, consumer});
    add_affine(program, parts, inputs);
    if (!fuse_steps(program, parts, parts.back(), "LayerNormalization", std::move(inputs), mean)) continue;
    step_at(program, parts.back()).normalized_count = normalized_count;
    return true;
  }
  return false;
}

bool fuse_rms_norm(Program& program, int mean) {
  const int square = producer_of(program, step_at(program, mean).inputs[0]);
  if (square == kNone || step_at(program, square).inputs.empty()) return false;
  const int x = step_at(program, square).inputs[0];
  if (!is_square(program, square, x) || only_consumer(program, output_of(program, square)) != mean) return false;
  std::vector<int> parts = divided_by_root(program, mean, x);
  if (parts.empty()) return false;
  const std::int64_t normalized_count = normed_by(program, mean);
  std::vector<int> inputs = {x};
  parts.insert(parts.begin(), square);
  add_affine(program, parts, inputs);
  if (!fuse_steps(program, parts, parts.back(), "RMSNormalization", std::move(inputs), mean)) return false;
  step_at(program, parts.back()).normalized_count = normalized_count;
  return true;
}

// Fuses a GroupNorm written as InstanceNorm: reshaped to one channel per group, normalized, reshaped back, scaled and
// shifted.
bool fuse_group_norm(Program& program, int norm) {
  const int before = producer_of(program, step_at(program, norm).inputs[0]);
  const int after = only_consumer(program, output_of(program, norm));
  if (!is_step(program, before, "Reshape") || !is_step(program, after, "Reshape")) return false;
  if (only_consumer(program, output_of(program, before)) != norm) return false;
  const int x = step_at(program, before).inputs[0];
  if (value_at(program, x).sizes != value_at(program, output_of(program, after)).sizes) return false;
  std::vector<int> parts = {before, norm, after};
  std::vector<int> inputs = {x};
  add_affine(program, parts, inputs);
  return fuse_steps(program, parts, parts.back(), "GroupNormalization", std::move(inputs), norm);
}

// Whether a constant has one element per channel. `behind`: number of dimensions after the channels, 0 for a matrix
// product.
bool is_bias(const Value& value, std::int64_t channels, std::size_t behind) {
  if (!value.constant || !value.sizes || value.sizes->size() <= behind) return false;
  return elements_of(*value.sizes) == channels && (*value.sizes)[value.sizes->size() - 1 - behind] == channels;
}

}  // namespace

bool fuse_norm(Program& program, int step) {
  if (is_step(program, step, "ReduceMean")) return fuse_layer_norm(program, step) || fuse_rms_norm(program, step);
  return is_step(program, step, "InstanceNormalization") && fuse_group_norm(program, step);
}

bool fuse_bias(Program& program, int step) {
  const bool convolves = is_step(program, step, "Conv") || is_step(program, step, "ConvTranspose");
  if (!convolves && !is_step(program, step, "MatMul")) return false;
  const ProgramStep& product = step_at(program, step);
  if (product.inputs.size() != 2 || !product.node->domain.empty()) return false;
  const Value& output = value_at(program, product.outputs[0]);
  const int sum = only_consumer(program, product.outputs[0]);
  if (!is_step(program, sum, "Add") || !value_at(program, product.inputs[1]).constant || output.sizes->size() < 2)
    return false;
  const int bias = other_input(program, sum, product.outputs[0]);
  const std::size_t behind = convolves ? output.sizes->size() - 2 : 0;
  const std::int64_t channels = (*output.sizes)[output.sizes->size() - 1 - behind];
  if (bias == kNone || !is_bias(value_at(program, bias), channels, behind)) return false;
  return fuse_steps(program, {step, sum}, sum, product.type, {product.inputs[0], product.inputs[1], bias}, step);
}

}  // namespace joulemap::predict::onnx
