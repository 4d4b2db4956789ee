// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

// The option `axis` as a number, also if it is a list of one.
std::int64_t axis_number(const LayerCall& call, std::int64_t otherwise) {
  const std::vector<std::int64_t> axes = call.axes("axis");
  return axes.empty() ? otherwise : axes.front();
}

void emit_by_channel(LayerCall& call, std::string_view form, std::size_t channel_axis, bool is_frozen) {
  const Shape& shape = call.shape();
  Shape pixels = shape;
  pixels.erase(pixels.begin() + static_cast<std::ptrdiff_t>(channel_axis));
  pixels.resize(std::max<std::size_t>(pixels.size(), 3), 1);
  Parameters parameters{{"batch", pixels.front()},
                        {"channels", shape[channel_axis]},
                        {"height", pixels[1]},
                        {"width", elements(pixels, 2, pixels.size())}};
  if (is_frozen) parameters.set("frozen", 1);
  call.emit(Kind::normalization, form, std::move(parameters));
}

// Emitted in the form that inference runs. training_step() changes it to batch statistics (form batch). `frozen` 1
// marks a layer that keeps its statistics in training.
std::vector<Shape> batch_normalization(LayerCall& call) {
  call.need_dimensions(1, kMaxDimensions);
  const Shape shape = call.shape();
  const std::size_t axis = call.axis(axis_number(call, -1), shape.size());
  if (call.failure()) return {shape};
  call.weights({call.flag("scale", true) ? shape[axis] : 0, call.flag("center", true) ? shape[axis] : 0});
  emit_by_channel(call, "batch-inference", axis, !call.traits.is_trainable || call.traits.is_inference);
  return {shape};
}

std::vector<Shape> group_normalization(LayerCall& call) {
  call.need_dimensions(2, kMaxDimensions);
  const Shape shape = call.shape();
  const std::size_t axis = call.axis(axis_number(call, -1), shape.size());
  if (call.failure()) return {shape};
  call.weights({call.flag("scale", true) ? shape[axis] : 0, call.flag("center", true) ? shape[axis] : 0});
  emit_by_channel(call, "group", axis, false);
  return {shape};
}

// Emits a norm in which `normed` elements are normalized together, for each of the remaining indices.
void emit_by_row(LayerCall& call, std::string_view form, std::int64_t normed) {
  const std::int64_t all = elements(call.shape());
  call.emit(Kind::normalization, form,
            {{"batch", all / std::max<std::int64_t>(1, normed)}, {"channels", normed}, {"height", 1}, {"width", 1}});
}

std::int64_t normed_elements(LayerCall& call) {
  std::vector<std::int64_t> axes = call.axes("axis");
  if (axes.empty()) axes = {-1};
  std::vector<std::size_t> places;
  std::int64_t normed = 1;
  for (const std::int64_t each : axes) {
    const std::size_t position = call.axis(each, call.shape().size());
    if (std::find(places.begin(), places.end(), position) != places.end()) continue;
    places.push_back(position);
    if (position < call.shape().size()) normed = saturating_product(normed, call.shape()[position]);
  }
  return normed;
}

std::vector<Shape> layer_normalization(LayerCall& call) {
  const std::int64_t normed = normed_elements(call);
  const bool is_rms = call.flag("rms_scaling", false);
  call.weights({call.flag("scale", true) ? normed : 0, !is_rms && call.flag("center", true) ? normed : 0});
  emit_by_row(call, is_rms ? "rms" : "layer", normed);
  return {call.shape()};
}

std::vector<Shape> rms_normalization(LayerCall& call) {
  const std::int64_t normed = normed_elements(call);
  call.weights({normed});
  emit_by_row(call, "rms", normed);
  return {call.shape()};
}

std::vector<Shape> unit_normalization(LayerCall& call) {
  emit_by_row(call, "rms", normed_elements(call));
  return {call.shape()};
}

constexpr NamedRule kRules[] = {
    {"BatchNormalization", batch_normalization},   {"BatchNormalizationV1", batch_normalization},
    {"BatchNormalizationV2", batch_normalization}, {"SyncBatchNormalization", batch_normalization},
    {"GroupNormalization", group_normalization},   {"LayerNormalization", layer_normalization},
    {"RMSNormalization", rms_normalization},       {"UnitNormalization", unit_normalization},
    {"rmsnormalization", unit_normalization},      {"layernormalization", unit_normalization},
    {"l2normalize", unit_normalization},           {"normalize", unit_normalization},
};

}  // namespace

std::span<const NamedRule> normalization_rules() { return kRules; }

}  // namespace joulemap::predict::keras
