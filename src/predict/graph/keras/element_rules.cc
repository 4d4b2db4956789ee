// SPDX-License-Identifier: Apache-2.0
//
// Rules for element-wise layers: activations, dropout, rescaling, and layers that do nothing in inference.
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

std::vector<Shape> nothing(LayerCall& call) {
  const Shape shape = call.shape();
  call.view(shape);
  return {shape};
}

std::vector<Shape> activation(LayerCall& call) {
  const Shape shape = call.shape();
  const std::string name = call.word("activation");
  if (name.empty() || name == "linear") return nothing(call);
  call.activation(name, shape);
  return {shape};
}

std::vector<Shape> relu(LayerCall& call) {
  const Shape shape = call.shape();
  const DocumentValue* const most = call.option("max_value");
  const DocumentValue* const slope = call.option("negative_slope");
  const bool leaks = slope != nullptr && slope->number().value_or(0) != 0;
  const bool stops = most != nullptr && most->number().value_or(0) == 6;
  call.activation(leaks ? "leaky_relu" : stops ? "relu6" : "relu", shape);
  return {shape};
}

std::vector<Shape> leaky_relu(LayerCall& call) {
  call.activation("leaky_relu", call.shape());
  return {call.shape()};
}

std::vector<Shape> elu(LayerCall& call) {
  call.activation("elu", call.shape());
  return {call.shape()};
}

std::vector<Shape> thresholded_relu(LayerCall& call) {
  call.activation("thresholded_relu", call.shape());
  return {call.shape()};
}

// PReLU has one trained slope per element of a sample, shared along shared_axes.
std::vector<Shape> prelu(LayerCall& call) {
  const Shape shape = call.shape();
  Shape slopes = shape;
  if (!slopes.empty()) slopes.front() = 1;
  for (const std::int64_t shared : call.axes("shared_axes")) {
    const std::size_t position = call.axis(shared, slopes.size());
    if (position < slopes.size()) slopes[position] = 1;
  }
  call.weights({elements(slopes)});
  call.activation("prelu", shape);
  return {shape};
}

std::vector<Shape> softmax(LayerCall& call) {
  const Shape shape = call.shape();
  const std::vector<std::int64_t> axes = call.axes("axis");
  call.activation("softmax", shape, axes.empty() ? -1 : axes.front());
  return {shape};
}

// Emitted as Kind::dropout, which runs in training only.
std::vector<Shape> dropout(LayerCall& call) {
  if (call.traits.is_inference) return nothing(call);
  const DocumentValue* const rate = call.option("rate");
  if (rate != nullptr && rate->number().value_or(1) == 0) return nothing(call);
  const Shape shape = call.shape();
  call.elementwise(Kind::dropout, "", shape);
  return {shape};
}

std::vector<Shape> rescaling(LayerCall& call) {
  const Shape shape = call.shape();
  call.elementwise(Kind::rescaling, "", shape);
  return {shape};
}

std::vector<Shape> layer_scale(LayerCall& call) {
  const Shape shape = call.shape();
  const std::int64_t width = call.size_or("projection_dim", call.dimension(-1));
  call.weights({width});
  call.emit(
      Kind::multiply, "last",
      {{"batch", 1}, {"rows", elements(shape) / std::max<std::int64_t>(1, call.dimension(-1))}, {"width", width}});
  return {shape};
}

constexpr NamedRule kRules[] = {
    {"Activation", activation},
    {"ReLU", relu},
    {"LeakyReLU", leaky_relu},
    {"ELU", elu},
    {"PReLU", prelu},
    {"ThresholdedReLU", thresholded_relu},
    {"Softmax", softmax},
    {"Dropout", dropout},
    {"SpatialDropout1D", dropout},
    {"SpatialDropout2D", dropout},
    {"SpatialDropout3D", dropout},
    {"AlphaDropout", dropout},
    {"GaussianDropout", dropout},
    {"GaussianNoise", dropout},
    {"StochasticDepth", dropout},
    {"FixedDropout", dropout},
    {"Rescaling", rescaling},
    {"Normalization", rescaling},
    {"LayerScale", layer_scale},
    {"ActivityRegularization", nothing},
    {"Masking", nothing},
    {"Identity", nothing},
    {"RandomFlip", nothing},
    {"RandomRotation", nothing},
    {"RandomZoom", nothing},
    {"RandomTranslation", nothing},
    {"RandomContrast", nothing},
    {"RandomBrightness", nothing},
    {"RandomHue", nothing},
    {"RandomSaturation", nothing},
    {"RandomColorJitter", nothing},
    {"RandomColorDegeneration", nothing},
    {"RandomGrayscale", nothing},
    {"RandomGaussianBlur", nothing},
    {"RandomElasticTransform", nothing},
    {"RandomErasing", nothing},
    {"RandomInvert", nothing},
    {"RandomPerspective", nothing},
    {"RandomPosterization", nothing},
    {"RandomSharpness", nothing},
    {"RandomShear", nothing},
    {"Solarization", nothing},
    {"AutoContrast", nothing},
    {"Equalization", nothing},
    {"RandAugment", nothing},
    {"AugMix", nothing},
    {"MixUp", nothing},
    {"CutMix", nothing},
    {"identity", nothing},
    {"stopgradient", nothing},
};

}  // namespace

std::span<const NamedRule> element_rules() { return kRules; }

}  // namespace joulemap::predict::keras
