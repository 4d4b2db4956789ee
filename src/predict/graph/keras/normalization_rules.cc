// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

// The option `axis` as a number, also if it is a list of one.
std::int64_t single_axis_option(const LayerCall& call, std::int64_t default_value) {
  const std::vector<std::int64_t> axes = call.axes_option("axis");
  return axes.empty() ? default_value : axes.front();
}

void emit_channel_norm(LayerCall& call, std::string_view operation_form, std::size_t channel_axis, bool is_frozen) {
  const Shape& shape = call.input_shape();
  Shape pixels = shape;
  pixels.erase(pixels.begin() + static_cast<std::ptrdiff_t>(channel_axis));
  pixels.resize(std::max<std::size_t>(pixels.size(), 3), 1);
  OperationParameters parameters{{"batch", pixels.front()},
                                 {"channels", shape[channel_axis]},
                                 {"height", pixels[1]},
                                 {"width", element_count(pixels, 2, pixels.size())}};
  if (is_frozen) parameters.set("frozen", 1);
  call.emit_operation(Kind::normalization, operation_form, std::move(parameters));
}

// Emitted in the form that inference runs. make_training_step() changes it to batch statistics (form batch). `frozen` 1
// marks a layer that keeps its statistics in training.
std::vector<Shape> apply_batch_normalization(LayerCall& call) {
  call.require_dimension_count(1, kMaxTensorDimensions);
  const Shape shape = call.input_shape();
  const std::size_t axis = call.normalize_axis(single_axis_option(call, -1), shape.size());
  if (call.failure()) return {shape};
  call.count_weights(
      {call.boolean_option("scale", true) ? shape[axis] : 0, call.boolean_option("center", true) ? shape[axis] : 0});
  emit_channel_norm(call, "batch-inference", axis, !call.traits.is_trainable || call.traits.runs_in_inference_mode);
  return {shape};
}

std::vector<Shape> apply_group_normalization(LayerCall& call) {
  call.require_dimension_count(2, kMaxTensorDimensions);
  const Shape shape = call.input_shape();
  const std::size_t axis = call.normalize_axis(single_axis_option(call, -1), shape.size());
  if (call.failure()) return {shape};
  call.count_weights(
      {call.boolean_option("scale", true) ? shape[axis] : 0, call.boolean_option("center", true) ? shape[axis] : 0});
  emit_channel_norm(call, "group", axis, false);
  return {shape};
}

// Emits a norm in which `normed_elements` elements are normalized together, for each of the remaining indices.
void emit_row_norm(LayerCall& call, std::string_view operation_form, std::int64_t normed_elements) {
  const std::int64_t total_element_count = element_count(call.input_shape());
  call.emit_operation(Kind::normalization, operation_form,
                      {{"batch", total_element_count / std::max<std::int64_t>(1, normed_elements)},
                       {"channels", normed_elements},
                       {"height", 1},
                       {"width", 1}});
}

std::int64_t normalized_element_count(LayerCall& call) {
  std::vector<std::int64_t> axes = call.axes_option("axis");
  if (axes.empty()) axes = {-1};
  std::vector<std::size_t> axis_positions;
  std::int64_t normed_elements = 1;
  for (const std::int64_t axis : axes) {
    const std::size_t position = call.normalize_axis(axis, call.input_shape().size());
    if (std::find(axis_positions.begin(), axis_positions.end(), position) != axis_positions.end()) continue;
    axis_positions.push_back(position);
    if (position < call.input_shape().size())
      normed_elements = saturating_product(normed_elements, call.input_shape()[position]);
  }
  return normed_elements;
}

std::vector<Shape> apply_layer_normalization(LayerCall& call) {
  const std::int64_t normed_elements = normalized_element_count(call);
  const bool is_rms = call.boolean_option("rms_scaling", false);
  call.count_weights({call.boolean_option("scale", true) ? normed_elements : 0,
                      !is_rms && call.boolean_option("center", true) ? normed_elements : 0});
  emit_row_norm(call, is_rms ? "rms" : "layer", normed_elements);
  return {call.input_shape()};
}

std::vector<Shape> apply_rms_normalization(LayerCall& call) {
  const std::int64_t normed_elements = normalized_element_count(call);
  call.count_weights({normed_elements});
  emit_row_norm(call, "rms", normed_elements);
  return {call.input_shape()};
}

std::vector<Shape> apply_unit_normalization(LayerCall& call) {
  emit_row_norm(call, "rms", normalized_element_count(call));
  return {call.input_shape()};
}

constexpr LayerClassRule kNormalizationLayerRules[] = {
    {"BatchNormalization", apply_batch_normalization},   {"BatchNormalizationV1", apply_batch_normalization},
    {"BatchNormalizationV2", apply_batch_normalization}, {"SyncBatchNormalization", apply_batch_normalization},
    {"GroupNormalization", apply_group_normalization},   {"LayerNormalization", apply_layer_normalization},
    {"RMSNormalization", apply_rms_normalization},       {"UnitNormalization", apply_unit_normalization},
    {"rmsnormalization", apply_unit_normalization},      {"layernormalization", apply_unit_normalization},
    {"l2normalize", apply_unit_normalization},           {"normalize", apply_unit_normalization},
};

}  // namespace

std::span<const LayerClassRule> normalization_rules() { return kNormalizationLayerRules; }

}  // namespace joulemap::predict::keras
