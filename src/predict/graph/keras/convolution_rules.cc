// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

// A batch of one-, two- or three-dimensional images.
struct ImageShape {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  Shape spatial_sizes;
  bool is_channels_last = true;

  Shape convolution_output_shape(const std::vector<SlidingWindow>& windows, std::int64_t out) const {
    Shape shape = {batch};
    if (!is_channels_last) shape.push_back(out);
    for (const SlidingWindow& window : windows) shape.push_back(window.output_size);
    if (is_channels_last) shape.push_back(out);
    return shape;
  }
};

ImageShape read_image_shape(LayerCall& call, std::size_t sides) {
  call.require_dimension_count(sides + 2, sides + 2);
  const Shape shape = call.input_shape();
  ImageShape image;
  image.is_channels_last = call.is_channels_last();
  if (shape.size() != sides + 2) {  // require_dimension_count() has failed
    image.spatial_sizes.assign(sides, 1);
    return image;
  }
  const auto first_spatial_dimension = shape.begin() + (image.is_channels_last ? 1 : 2);
  image.batch = shape.front();
  image.channels = image.is_channels_last ? shape.back() : shape[1];
  image.spatial_sizes.assign(first_spatial_dimension, first_spatial_dimension + static_cast<std::ptrdiff_t>(sides));
  return image;
}

std::vector<SlidingWindow> read_windows(LayerCall& call, const ImageShape& image) {
  const std::size_t sides = image.spatial_sizes.size();
  const std::vector<std::int64_t> kernel = call.per_dimension_option("kernel_size", sides, 0);
  const std::vector<std::int64_t> stride = call.per_dimension_option("strides", sides, 1);
  const std::vector<std::int64_t> dilation = call.per_dimension_option("dilation_rate", sides, 1);
  const Padding padding = call.padding_option();
  if (kernel.front() < 1) call.set_failure("its kernel_size is missing");
  std::vector<SlidingWindow> windows;
  for (std::size_t i = 0; i < sides; ++i) {
    windows.push_back(make_sliding_window(image.spatial_sizes[i], std::max<std::int64_t>(1, kernel[i]), stride[i],
                                          dilation[i], padding));
    if (windows.back().output_size < 1) {
      call.set_failure(fmt::format("its kernel of {} does not fit into {}", kernel[i], image.spatial_sizes[i]),
                       "set a larger input with --input");
    }
  }
  return windows;
}

// Sets the parameters of the width that differ from those of the height.
void set_window_parameters(OperationParameters& parameters, const SlidingWindow& height, const SlidingWindow& width) {
  if (width.kernel != height.kernel) parameters.set("kernel_width", width.kernel);
  if (width.stride != height.stride) parameters.set("stride_width", width.stride);
  if (width.padding != height.padding) parameters.set("padding_width", width.padding);
  if (width.dilation != height.dilation) parameters.set("dilation_width", width.dilation);
}

struct ConvolutionFilters {
  std::int64_t output_channels = 1;
  std::int64_t group_count = 1;
  bool has_bias = false;
  bool is_transposed = false;
};

void emit_convolution(LayerCall& call, const ImageShape& image, const std::vector<SlidingWindow>& windows,
                      const ConvolutionFilters& filters) {
  if (image.channels % filters.group_count != 0 || filters.output_channels % filters.group_count != 0) {
    call.set_failure(fmt::format("{} channels and {} filters are not multiples of its {} groups", image.channels,
                                 filters.output_channels, filters.group_count));
    return;
  }
  std::int64_t kernel = saturating_product(image.channels / filters.group_count, filters.output_channels);
  for (const SlidingWindow& window : windows) kernel = saturating_product(kernel, window.kernel);
  call.count_weights({kernel, filters.has_bias ? filters.output_channels : 0});

  const SlidingWindow& width = windows.back();
  const SlidingWindow height = windows.size() > 1 ? windows[windows.size() - 2] : SlidingWindow{};
  OperationParameters parameters{
      {"batch", image.batch},          {"channels", image.channels}, {"out", filters.output_channels},
      {"height", height.input_size},   {"width", width.input_size},  {"kernel", height.kernel},
      {"stride", height.stride},       {"padding", height.padding},  {"dilation", height.dilation},
      {"groups", filters.group_count}, {"bias", filters.has_bias},   {"channels_last", image.is_channels_last}};
  set_window_parameters(parameters, height, width);
  if (!height.has_equal_padding || !width.has_equal_padding) {
    parameters.set("out_height", height.output_size);
    parameters.set("out_width", width.output_size);
  }
  if (windows.size() == 3) {
    parameters.set("depth", windows.front().input_size);
    parameters.set("kernel_depth", windows.front().kernel);
    parameters.set("out_depth", windows.front().output_size);
  }
  if (filters.is_transposed) parameters.set("transposed", 1);
  call.emit_operation(Kind::convolution, "", std::move(parameters));
}

template <std::size_t kSides>
std::vector<Shape> apply_convolution(LayerCall& call) {
  const ImageShape image = read_image_shape(call, kSides);
  const std::vector<SlidingWindow> windows = read_windows(call, image);
  const ConvolutionFilters filters{call.required_size_option("filters"), call.size_option_or("groups", 1),
                                   call.boolean_option("use_bias", true)};
  emit_convolution(call, image, windows, filters);
  Shape out = image.convolution_output_shape(windows, filters.output_channels);
  call.emit_activation(call.text_option("activation"), out, image.is_channels_last ? -1 : 1);
  return {std::move(out)};
}

template <std::size_t kSides>
std::vector<Shape> apply_transposed_convolution(LayerCall& call) {
  const ImageShape image = read_image_shape(call, kSides);
  const std::vector<std::int64_t> kernel = call.per_dimension_option("kernel_size", kSides, 1);
  const std::vector<std::int64_t> stride = call.per_dimension_option("strides", kSides, 1);
  const std::vector<std::int64_t> dilation = call.per_dimension_option("dilation_rate", kSides, 1);
  const bool pads_output = call.find_option("output_padding") != nullptr;
  std::vector<std::int64_t> output_paddings = call.axes_option("output_padding");  // empty if absent
  output_paddings.resize(kSides, output_paddings.empty() ? 0 : output_paddings.front());
  const Padding padding = call.padding_option();
  std::vector<SlidingWindow> windows;
  for (std::size_t i = 0; i < kSides; ++i) {
    const std::optional<std::int64_t> output_padding =
        pads_output ? std::optional(std::clamp<std::int64_t>(output_paddings[i], 0, kMaxWindowFactor)) : std::nullopt;
    windows.push_back(
        make_transposed_window(image.spatial_sizes[i], kernel[i], stride[i], dilation[i], padding, output_padding));
  }
  const ConvolutionFilters filters{call.required_size_option("filters"), call.size_option_or("groups", 1),
                                   call.boolean_option("use_bias", true), true};
  emit_convolution(call, image, windows, filters);
  Shape out = image.convolution_output_shape(windows, filters.output_channels);
  call.emit_activation(call.text_option("activation"), out, image.is_channels_last ? -1 : 1);
  return {std::move(out)};
}

template <std::size_t kSides>
std::vector<Shape> apply_depthwise_convolution(LayerCall& call) {
  const ImageShape image = read_image_shape(call, kSides);
  const std::vector<SlidingWindow> windows = read_windows(call, image);
  const std::int64_t out_channels = saturating_product(image.channels, call.size_option_or("depth_multiplier", 1));
  emit_convolution(call, image, windows, {out_channels, image.channels, call.boolean_option("use_bias", true)});
  Shape out = image.convolution_output_shape(windows, out_channels);
  call.emit_activation(call.text_option("activation"), out, image.is_channels_last ? -1 : 1);
  return {std::move(out)};
}

// A depthwise convolution, then a pointwise one.
template <std::size_t kSides>
std::vector<Shape> apply_separable_convolution(LayerCall& call) {
  ImageShape image = read_image_shape(call, kSides);
  const std::vector<SlidingWindow> windows = read_windows(call, image);
  const std::int64_t depthwise_channels =
      saturating_product(image.channels, call.size_option_or("depth_multiplier", 1));
  const std::int64_t filters = call.required_size_option("filters");
  emit_convolution(call, image, windows, {depthwise_channels, image.channels, false});
  image.channels = depthwise_channels;
  std::vector<SlidingWindow> points;
  points.reserve(windows.size());
  for (const SlidingWindow& window : windows)
    points.push_back(make_sliding_window(window.output_size, 1, 1, 1, Padding::valid));
  emit_convolution(call, image, points, {filters, 1, call.boolean_option("use_bias", true)});
  Shape out = image.convolution_output_shape(points, filters);
  call.emit_activation(call.text_option("activation"), out, image.is_channels_last ? -1 : 1);
  return {std::move(out)};
}

constexpr LayerClassRule kConvolutionLayerRules[] = {
    {"Conv1D", apply_convolution<1>},
    {"Conv2D", apply_convolution<2>},
    {"Conv3D", apply_convolution<3>},
    {"Convolution1D", apply_convolution<1>},
    {"Convolution2D", apply_convolution<2>},
    {"Convolution3D", apply_convolution<3>},
    {"Conv1DTranspose", apply_transposed_convolution<1>},
    {"Conv2DTranspose", apply_transposed_convolution<2>},
    {"Conv3DTranspose", apply_transposed_convolution<3>},
    {"DepthwiseConv1D", apply_depthwise_convolution<1>},
    {"DepthwiseConv2D", apply_depthwise_convolution<2>},
    {"SeparableConv1D", apply_separable_convolution<1>},
    {"SeparableConv2D", apply_separable_convolution<2>},
    {"SeparableConvolution1D", apply_separable_convolution<1>},
    {"SeparableConvolution2D", apply_separable_convolution<2>},
};

}  // namespace

std::span<const LayerClassRule> convolution_rules() { return kConvolutionLayerRules; }

}  // namespace joulemap::predict::keras
