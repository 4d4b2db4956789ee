// SPDX-License-Identifier: Apache-2.0
//
// Fuses norms written as means and roots, and products whose bias is a separate addition.
#include <algorithm>

#include "predict/graph/onnx/fusions.h"

namespace joulemap::predict::onnx {
namespace {

// Whether the step computes x * x or x ** 2.
bool is_square_of(Program& program, int step, int x) {
  const bool power =
      is_step_of_type(program, step, "Pow") && constant_scalar_value(program, find_step(program, step).inputs[1]) == 2;
  const bool product =
      is_step_of_type(program, step, "Mul") && find_step(program, step).inputs[0] == find_step(program, step).inputs[1];
  return (power || product) && find_step(program, step).inputs[0] == x;
}

// Matches x / sqrt(mean + epsilon) in its usual forms, starting at the mean. Returns the steps; empty if it does not
// match.
std::vector<int> match_division_by_rms(Program& program, int mean, int x) {
  std::vector<int> parts = {mean};
  const int sum = single_consumer_step(program, output_value_of_step(program, mean));
  if (!is_step_of_type(program, sum, "Add") || input_of_scaling_step(program, sum) == kNoIndex) return {};
  parts.push_back(sum);
  const int root = single_consumer_step(program, output_value_of_step(program, sum));
  if (!is_step_of_type(program, root, "Sqrt")) return {};
  parts.push_back(root);
  int next_step = single_consumer_step(program, output_value_of_step(program, root));
  const bool is_reciprocal = is_step_of_type(program, next_step, "Reciprocal") ||
                             (is_step_of_type(program, next_step, "Div") &&
                              constant_scalar_value(program, find_step(program, next_step).inputs[0]) == 1);
  if (is_reciprocal) {
    parts.push_back(next_step);
    next_step = single_consumer_step(program, output_value_of_step(program, next_step));
  }
  const bool ends = is_step_of_type(program, next_step, is_reciprocal ? "Mul" : "Div") &&
                    other_input_value(program, next_step, output_value_of_step(program, parts.back())) == x;
  if (!ends) return {};
  parts.push_back(next_step);
  return parts;
}

// Appends a following scale and offset by constants, which are weights of the norm.
void append_affine_steps(Program& program, std::vector<int>& parts, std::vector<int>& inputs) {
  for (const std::string_view type : {"Mul", "Add"}) {
    int next_step = single_consumer_step(program, output_value_of_step(program, parts.back()));
    std::vector<int> cast_steps;
    if (is_step_of_type(program, next_step, "Cast")) {
      cast_steps.push_back(next_step);
      next_step = single_consumer_step(program, output_value_of_step(program, next_step));
    }
    if (!is_step_of_type(program, next_step, type)) return;
    const int previous_value = output_value_of_step(program, cast_steps.empty() ? parts.back() : cast_steps.back());
    const int weight = other_input_value(program, next_step, previous_value);
    if (weight == kNoIndex || !find_value(program, weight).is_constant) return;
    parts.insert(parts.end(), cast_steps.begin(), cast_steps.end());
    parts.push_back(next_step);
    inputs.push_back(weight);
  }
}

std::int64_t count_elements_per_norm(Program& program, int mean) {
  const ProgramStep& step = find_step(program, mean);
  const std::int64_t mean_element_count = onnx_element_count(*find_value(program, step.outputs[0]).sizes);
  return mean_element_count == 0 ? 0
                                 : onnx_element_count(*find_value(program, step.inputs[0]).sizes) / mean_element_count;
}

bool fuse_layer_norm(Program& program, int mean) {
  const int x = find_step(program, mean).inputs[0];
  const int difference = single_consumer_step(program, output_value_of_step(program, mean));
  if (!is_step_of_type(program, difference, "Sub") || find_step(program, difference).inputs[0] != x) return false;
  const int centred_value = output_value_of_step(program, difference);
  for (const int consumer : find_value(program, centred_value).consumer_steps) {
    if (!is_square_of(program, consumer, centred_value)) continue;
    const int variance = single_consumer_step(program, output_value_of_step(program, consumer));
    if (!is_step_of_type(program, variance, "ReduceMean")) continue;
    std::vector<int> parts = match_division_by_rms(program, variance, centred_value);
    if (parts.empty()) continue;
    const std::int64_t normalized_count = count_elements_per_norm(program, mean);
    std::vector<int> inputs = {x};
    parts.insert(parts.end() - 1, {mean, difference, consumer});
    append_affine_steps(program, parts, inputs);
    if (!fuse_steps(program, parts, parts.back(), "LayerNormalization", std::move(inputs), mean)) continue;
    find_step(program, parts.back()).normalized_element_count = normalized_count;
    return true;
  }
  return false;
}

bool fuse_rms_norm(Program& program, int mean) {
  const int square_step = producer_step(program, find_step(program, mean).inputs[0]);
  if (square_step == kNoIndex || find_step(program, square_step).inputs.empty()) return false;
  const int x = find_step(program, square_step).inputs[0];
  if (!is_square_of(program, square_step, x) ||
      single_consumer_step(program, output_value_of_step(program, square_step)) != mean)
    return false;
  std::vector<int> parts = match_division_by_rms(program, mean, x);
  if (parts.empty()) return false;
  const std::int64_t normalized_count = count_elements_per_norm(program, mean);
  std::vector<int> inputs = {x};
  parts.insert(parts.begin(), square_step);
  append_affine_steps(program, parts, inputs);
  if (!fuse_steps(program, parts, parts.back(), "RMSNormalization", std::move(inputs), mean)) return false;
  find_step(program, parts.back()).normalized_element_count = normalized_count;
  return true;
}

// Fuses a GroupNorm written as InstanceNorm: reshaped to one channel per group, normalized, reshaped back, scaled and
// shifted.
bool fuse_group_norm(Program& program, int norm) {
  const int input_reshape = producer_step(program, find_step(program, norm).inputs[0]);
  const int output_reshape = single_consumer_step(program, output_value_of_step(program, norm));
  if (!is_step_of_type(program, input_reshape, "Reshape") || !is_step_of_type(program, output_reshape, "Reshape"))
    return false;
  if (single_consumer_step(program, output_value_of_step(program, input_reshape)) != norm) return false;
  const int x = find_step(program, input_reshape).inputs[0];
  if (find_value(program, x).sizes != find_value(program, output_value_of_step(program, output_reshape)).sizes)
    return false;
  std::vector<int> parts = {input_reshape, norm, output_reshape};
  std::vector<int> inputs = {x};
  append_affine_steps(program, parts, inputs);
  return fuse_steps(program, parts, parts.back(), "GroupNormalization", std::move(inputs), norm);
}

// Whether a constant has one element per channel. `trailing_dimension_count`: number of dimensions after the channels,
// 0 for a matrix product.
bool is_channel_bias(const Value& value, std::int64_t channels, std::size_t trailing_dimension_count) {
  if (!value.is_constant || !value.sizes || value.sizes->size() <= trailing_dimension_count) return false;
  return onnx_element_count(*value.sizes) == channels &&
         (*value.sizes)[value.sizes->size() - 1 - trailing_dimension_count] == channels;
}

}  // namespace

bool fuse_norm(Program& program, int step) {
  if (is_step_of_type(program, step, "ReduceMean"))
    return fuse_layer_norm(program, step) || fuse_rms_norm(program, step);
  return is_step_of_type(program, step, "InstanceNormalization") && fuse_group_norm(program, step);
}

bool fuse_bias(Program& program, int step) {
  const bool convolves = is_step_of_type(program, step, "Conv") || is_step_of_type(program, step, "ConvTranspose");
  if (!convolves && !is_step_of_type(program, step, "MatMul")) return false;
  const ProgramStep& product = find_step(program, step);
  if (product.inputs.size() != 2 || !product.node->operator_domain.empty()) return false;
  const Value& output = find_value(program, product.outputs[0]);
  const int sum = single_consumer_step(program, product.outputs[0]);
  if (!is_step_of_type(program, sum, "Add") || !find_value(program, product.inputs[1]).is_constant ||
      output.sizes->size() < 2)
    return false;
  const int bias = other_input_value(program, sum, product.outputs[0]);
  const std::size_t trailing_dimension_count = convolves ? output.sizes->size() - 2 : 0;
  const std::int64_t channels = (*output.sizes)[output.sizes->size() - 1 - trailing_dimension_count];
  if (bias == kNoIndex || !is_channel_bias(find_value(program, bias), channels, trailing_dimension_count)) return false;
  return fuse_steps(program, {step, sum}, sum, product.type, {product.inputs[0], product.inputs[1], bias}, step);
}

}  // namespace joulemap::predict::onnx
