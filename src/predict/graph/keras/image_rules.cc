// SPDX-License-Identifier: Apache-2.0
//
// Rules for layers that change image sizes: padding, cropping, upsampling, resizing.
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

using IntegerPair = std::pair<std::int64_t, std::int64_t>;  // counts before and after

// Parses a padding or cropping: 2 for all sides, [1, 2] for each side, [[1, 2], [3, 4]] for before and after each side.
// With a single side, [1, 2] is before and after.
std::vector<IntegerPair> read_integer_pairs(LayerCall& call, std::string_view key, std::size_t sides,
                                            std::int64_t default_value) {
  std::vector<IntegerPair> integer_pairs;
  const auto checked = [&](const DocumentValue& value) {
    const std::int64_t number = value.integer().value_or(-1);
    if (number < 0 || number > kMaxWindowFactor)
      call.set_failure(fmt::format("its {} is not between 0 and {}", key, kMaxWindowFactor));
    return std::clamp<std::int64_t>(number, 0, kMaxWindowFactor);
  };
  const DocumentValue* const value = call.find_option(key);
  const DocumentValue::Array* const side_values = value == nullptr ? nullptr : value->array();
  if (side_values == nullptr) {
    const std::int64_t common_value = value == nullptr ? default_value : checked(*value);
    return std::vector<IntegerPair>(sides, {common_value, common_value});
  }
  if (sides == 1 && side_values->size() == 2) return {{checked(side_values->front()), checked(side_values->back())}};
  for (const DocumentValue& side_value : *side_values) {
    if (integer_pairs.size() == sides) break;
    const DocumentValue::Array* const side_pair = side_value.array();
    if (side_pair == nullptr) {
      integer_pairs.emplace_back(checked(side_value), checked(side_value));
    } else if (side_pair->size() == 2) {
      integer_pairs.emplace_back(checked(side_pair->front()), checked(side_pair->back()));
    }
  }
  if (integer_pairs.size() != sides)
    call.set_failure(fmt::format("its {} does not have a value for each of {} sides", key, sides));
  integer_pairs.resize(sides);
  return integer_pairs;
}

struct ResizedImage {
  Shape input_shape;
  Shape output_shape;
  std::size_t first_spatial_axis = 1;  // index of the first spatial dimension
  std::size_t channels = 0;
};

ResizedImage make_resized_image(LayerCall& call, std::size_t sides, bool is_channels_last) {
  call.require_dimension_count(sides + 2, sides + 2);
  ResizedImage resized;
  resized.input_shape = call.input_shape();
  resized.input_shape.resize(sides + 2, 1);
  resized.output_shape = resized.input_shape;
  resized.first_spatial_axis = is_channels_last ? 1 : 2;
  resized.channels = is_channels_last ? sides + 1 : 1;
  return resized;
}

void emit_resized_image(LayerCall& call, Kind kind, std::string_view operation_form, const ResizedImage& resized,
                        std::int64_t padding) {
  const std::size_t sides = resized.input_shape.size() - 2;
  const std::size_t last_spatial_axis = resized.first_spatial_axis + sides - 1;
  const std::int64_t height = element_count(resized.input_shape, resized.first_spatial_axis, last_spatial_axis);
  const std::int64_t out_height = element_count(resized.output_shape, resized.first_spatial_axis, last_spatial_axis);
  OperationParameters parameters{{"batch", resized.input_shape.front()},
                                 {"channels", resized.input_shape[resized.channels]},
                                 {"height", height},
                                 {"width", resized.input_shape[last_spatial_axis]}};
  if (kind == Kind::padding) {
    parameters.set("padding", padding);
  } else {
    parameters.set("out", resized.output_shape[last_spatial_axis]);
  }
  const bool has_equal_sides = kind == Kind::padding ? out_height == height + 2 * padding &&
                                                           resized.output_shape[last_spatial_axis] ==
                                                               resized.input_shape[last_spatial_axis] + 2 * padding
                                                     : out_height == resized.output_shape[last_spatial_axis];
  if (!has_equal_sides) {
    parameters.set("out_height", out_height);
    parameters.set("out_width", resized.output_shape[last_spatial_axis]);
  }
  call.emit_operation(kind, operation_form, std::move(parameters));
}

template <std::size_t kSides>
std::vector<Shape> apply_zero_padding(LayerCall& call) {
  const std::vector<IntegerPair> side_paddings = read_integer_pairs(call, "padding", kSides, 1);
  ResizedImage resized = make_resized_image(call, kSides, call.is_channels_last());
  for (std::size_t i = 0; i < kSides; ++i)
    resized.output_shape[resized.first_spatial_axis + i] += side_paddings[i].first + side_paddings[i].second;
  emit_resized_image(call, Kind::padding, "constant", resized, side_paddings.back().first);
  return {resized.output_shape};
}

// Cropping copies the part that remains.
template <std::size_t kSides>
std::vector<Shape> apply_cropping(LayerCall& call) {
  const std::vector<IntegerPair> cropping = read_integer_pairs(call, "cropping", kSides, 1);
  ResizedImage resized = make_resized_image(call, kSides, call.is_channels_last());
  for (std::size_t i = 0; i < kSides; ++i) {
    std::int64_t& side = resized.output_shape[resized.first_spatial_axis + i];
    side -= cropping[i].first + cropping[i].second;
    if (side < 1) call.set_failure("it crops the whole input", "set a larger input with --input");
    side = std::max<std::int64_t>(side, 1);
  }
  call.emit_elementwise(Kind::reshape, "gather", resized.output_shape);
  return {resized.output_shape};
}

std::string_view interpolation_form(const std::string& interpolation) {
  return interpolation.empty() || interpolation == "nearest" ? "nearest" : "bilinear";
}

template <std::size_t kSides>
std::vector<Shape> apply_upsampling(LayerCall& call) {
  const std::vector<std::int64_t> factor = call.per_dimension_option("size", kSides, 2);
  ResizedImage resized = make_resized_image(call, kSides, call.is_channels_last());
  for (std::size_t i = 0; i < kSides; ++i) {
    resized.output_shape[resized.first_spatial_axis + i] =
        saturating_product(resized.output_shape[resized.first_spatial_axis + i], factor[i]);
  }
  emit_resized_image(call, Kind::resize, interpolation_form(call.text_option("interpolation")), resized, 0);
  return {resized.output_shape};
}

std::vector<Shape> apply_resizing(LayerCall& call) {
  if (call.input_shape().size() == 3 && !call.inputs.empty()) {  // an image without a batch
    Shape& sizes = call.inputs.front().tensor.sizes;
    sizes.insert(sizes.begin(), 1);
  }
  ResizedImage resized = make_resized_image(call, 2, call.is_channels_last());
  resized.output_shape[resized.first_spatial_axis] = call.required_size_option("height");
  resized.output_shape[resized.first_spatial_axis + 1] = call.required_size_option("width");
  const std::string interpolation = call.text_option("interpolation");
  emit_resized_image(call, Kind::resize, interpolation.empty() ? "bilinear" : interpolation_form(interpolation),
                     resized, 0);
  return {resized.output_shape};
}

std::vector<Shape> apply_center_crop(LayerCall& call) {
  ResizedImage resized = make_resized_image(call, 2, call.is_channels_last());
  resized.output_shape[resized.first_spatial_axis] = call.required_size_option("height");
  resized.output_shape[resized.first_spatial_axis + 1] = call.required_size_option("width");
  call.emit_elementwise(Kind::reshape, "gather", resized.output_shape);
  return {resized.output_shape};
}

// tf.image.resize and keras.ops.image.resize, whose size is a list.
std::vector<Shape> apply_resize_function(LayerCall& call) {
  ResizedImage resized = make_resized_image(call, 2, call.is_channels_last());
  const std::vector<std::int64_t> size = call.axes_option("size");
  if (size.size() != 2 || size.front() < 1 || size.back() < 1) call.set_failure("its size is not two numbers");
  if (size.size() == 2) {
    resized.output_shape[resized.first_spatial_axis] = std::max<std::int64_t>(1, size.front());
    resized.output_shape[resized.first_spatial_axis + 1] = std::max<std::int64_t>(1, size.back());
  }
  const std::string method = call.text_option("interpolation") + call.text_option("method");
  emit_resized_image(call, Kind::resize, method.empty() ? "bilinear" : interpolation_form(method), resized, 0);
  return {resized.output_shape};
}

constexpr LayerClassRule kImageLayerRules[] = {
    {"ZeroPadding1D", apply_zero_padding<1>}, {"ZeroPadding2D", apply_zero_padding<2>},
    {"ZeroPadding3D", apply_zero_padding<3>}, {"Cropping1D", apply_cropping<1>},
    {"Cropping2D", apply_cropping<2>},        {"Cropping3D", apply_cropping<3>},
    {"UpSampling1D", apply_upsampling<1>},    {"UpSampling2D", apply_upsampling<2>},
    {"UpSampling3D", apply_upsampling<3>},    {"Resizing", apply_resizing},
    {"CenterCrop", apply_center_crop},        {"RandomCrop", apply_center_crop},
    {"resize", apply_resize_function},        {"resizev2", apply_resize_function},
};

}  // namespace

std::span<const LayerClassRule> image_rules() { return kImageLayerRules; }

}  // namespace joulemap::predict::keras
