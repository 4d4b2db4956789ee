// SPDX-License-Identifier: Apache-2.0
//
// Rules for element-wise layers: activations, dropout, rescaling, and layers that do nothing in inference.
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

std::vector<Shape> apply_identity(LayerCall& call) {
  const Shape shape = call.input_shape();
  call.emit_view(shape);
  return {shape};
}

std::vector<Shape> apply_activation(LayerCall& call) {
  const Shape shape = call.input_shape();
  const std::string name = call.text_option("activation");
  if (name.empty() || name == "linear") return apply_identity(call);
  call.emit_activation(name, shape);
  return {shape};
}

std::vector<Shape> apply_relu(LayerCall& call) {
  const Shape shape = call.input_shape();
  const DocumentValue* const max_value = call.find_option("max_value");
  const DocumentValue* const slope = call.find_option("negative_slope");
  const bool is_leaky = slope != nullptr && slope->number().value_or(0) != 0;
  const bool stops = max_value != nullptr && max_value->number().value_or(0) == 6;
  call.emit_activation(is_leaky ? "leaky_relu" : stops ? "relu6" : "relu", shape);
  return {shape};
}

std::vector<Shape> apply_leaky_relu(LayerCall& call) {
  call.emit_activation("leaky_relu", call.input_shape());
  return {call.input_shape()};
}

std::vector<Shape> apply_elu(LayerCall& call) {
  call.emit_activation("elu", call.input_shape());
  return {call.input_shape()};
}

std::vector<Shape> apply_thresholded_relu(LayerCall& call) {
  call.emit_activation("thresholded_relu", call.input_shape());
  return {call.input_shape()};
}

// PReLU has one trained slope per element of a sample, shared along shared_axes.
std::vector<Shape> apply_prelu(LayerCall& call) {
  const Shape shape = call.input_shape();
  Shape slopes = shape;
  if (!slopes.empty()) slopes.front() = 1;
  for (const std::int64_t shared_axis : call.axes_option("shared_axes")) {
    const std::size_t position = call.normalize_axis(shared_axis, slopes.size());
    if (position < slopes.size()) slopes[position] = 1;
  }
  call.count_weights({element_count(slopes)});
  call.emit_activation("prelu", shape);
  return {shape};
}

std::vector<Shape> apply_softmax(LayerCall& call) {
  const Shape shape = call.input_shape();
  const std::vector<std::int64_t> axes = call.axes_option("axis");
  call.emit_activation("softmax", shape, axes.empty() ? -1 : axes.front());
  return {shape};
}

// Emitted as Kind::dropout, which runs in training only.
std::vector<Shape> apply_dropout(LayerCall& call) {
  if (call.traits.runs_in_inference_mode) return apply_identity(call);
  const DocumentValue* const rate = call.find_option("rate");
  if (rate != nullptr && rate->number().value_or(1) == 0) return apply_identity(call);
  const Shape shape = call.input_shape();
  call.emit_elementwise(Kind::dropout, "", shape);
  return {shape};
}

std::vector<Shape> apply_rescaling(LayerCall& call) {
  const Shape shape = call.input_shape();
  call.emit_elementwise(Kind::rescaling, "", shape);
  return {shape};
}

std::vector<Shape> apply_layer_scale(LayerCall& call) {
  const Shape shape = call.input_shape();
  const std::int64_t width = call.size_option_or("projection_dim", call.input_dimension(-1));
  call.count_weights({width});
  call.emit_operation(Kind::multiply, "last",
                      {{"batch", 1},
                       {"rows", element_count(shape) / std::max<std::int64_t>(1, call.input_dimension(-1))},
                       {"width", width}});
  return {shape};
}

constexpr LayerClassRule kElementLayerRules[] = {
    {"Activation", apply_activation},
    {"ReLU", apply_relu},
    {"LeakyReLU", apply_leaky_relu},
    {"ELU", apply_elu},
    {"PReLU", apply_prelu},
    {"ThresholdedReLU", apply_thresholded_relu},
    {"Softmax", apply_softmax},
    {"Dropout", apply_dropout},
    {"SpatialDropout1D", apply_dropout},
    {"SpatialDropout2D", apply_dropout},
    {"SpatialDropout3D", apply_dropout},
    {"AlphaDropout", apply_dropout},
    {"GaussianDropout", apply_dropout},
    {"GaussianNoise", apply_dropout},
    {"StochasticDepth", apply_dropout},
    {"FixedDropout", apply_dropout},
    {"Rescaling", apply_rescaling},
    {"Normalization", apply_rescaling},
    {"LayerScale", apply_layer_scale},
    {"ActivityRegularization", apply_identity},
    {"Masking", apply_identity},
    {"Identity", apply_identity},
    {"RandomFlip", apply_identity},
    {"RandomRotation", apply_identity},
    {"RandomZoom", apply_identity},
    {"RandomTranslation", apply_identity},
    {"RandomContrast", apply_identity},
    {"RandomBrightness", apply_identity},
    {"RandomHue", apply_identity},
    {"RandomSaturation", apply_identity},
    {"RandomColorJitter", apply_identity},
    {"RandomColorDegeneration", apply_identity},
    {"RandomGrayscale", apply_identity},
    {"RandomGaussianBlur", apply_identity},
    {"RandomElasticTransform", apply_identity},
    {"RandomErasing", apply_identity},
    {"RandomInvert", apply_identity},
    {"RandomPerspective", apply_identity},
    {"RandomPosterization", apply_identity},
    {"RandomSharpness", apply_identity},
    {"RandomShear", apply_identity},
    {"Solarization", apply_identity},
    {"AutoContrast", apply_identity},
    {"Equalization", apply_identity},
    {"RandAugment", apply_identity},
    {"AugMix", apply_identity},
    {"MixUp", apply_identity},
    {"CutMix", apply_identity},
    {"identity", apply_identity},
    {"stopgradient", apply_identity},
};

}  // namespace

std::span<const LayerClassRule> elementwise_layer_rules() { return kElementLayerRules; }

}  // namespace joulemap::predict::keras
