// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

// A batch of one-, two- or three-dimensional images.
struct Image {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  Shape sides;
  bool is_channels_last = true;

  Shape with(const std::vector<SlidingWindow>& windows, std::int64_t out) const {
    Shape shape = {batch};
    if (!is_channels_last) shape.push_back(out);
    for (const SlidingWindow& window : windows) shape.push_back(window.out);
    if (is_channels_last) shape.push_back(out);
    return shape;
  }
};

Image image_of(LayerCall& call, std::size_t sides) {
  call.need_dimensions(sides + 2, sides + 2);
  const Shape shape = call.shape();
  Image image;
  image.is_channels_last = call.is_channels_last();
  if (shape.size() != sides + 2) {  // need_dimensions() has failed
    image.sides.assign(sides, 1);
    return image;
  }
  const auto first = shape.begin() + (image.is_channels_last ? 1 : 2);
  image.batch = shape.front();
  image.channels = image.is_channels_last ? shape.back() : shape[1];
  image.sides.assign(first, first + static_cast<std::ptrdiff_t>(sides));
  return image;
}

std::vector<SlidingWindow> windows_of(LayerCall& call, const Image& image) {
  const std::size_t sides = image.sides.size();
  const std::vector<std::int64_t> kernel = call.factors("kernel_size", sides, 0);
  const std::vector<std::int64_t> stride = call.factors("strides", sides, 1);
  const std::vector<std::int64_t> dilation = call.factors("dilation_rate", sides, 1);
  const Padding padding = call.padding();
  if (kernel.front() < 1) call.fail("its kernel_size is missing");
  std::vector<SlidingWindow> windows;
  for (std::size_t i = 0; i < sides; ++i) {
    windows.push_back(
        sliding_window(image.sides[i], std::max<std::int64_t>(1, kernel[i]), stride[i], dilation[i], padding));
    if (windows.back().out < 1) {
      call.fail(fmt::format("its kernel of {} does not fit into {}", kernel[i], image.sides[i]),
                "set a larger input with --input");
    }
  }
  return windows;
}

// Sets the parameters of the width that differ from those of the height.
void set_width(Parameters& parameters, const SlidingWindow& height, const SlidingWindow& width) {
  if (width.kernel != height.kernel) parameters.set("kernel_width", width.kernel);
  if (width.stride != height.stride) parameters.set("stride_width", width.stride);
  if (width.padding != height.padding) parameters.set("padding_width", width.padding);
  if (width.dilation != height.dilation) parameters.set("dilation_width", width.dilation);
}

struct Filters {
  std::int64_t out = 1;
  std::int64_t groups = 1;
  bool has_bias = false;
  bool is_transposed = false;
};

void emit_convolution(LayerCall& call, const Image& image, const std::vector<SlidingWindow>& windows,
                      const Filters& filters) {
  if (image.channels % filters.groups != 0 || filters.out % filters.groups != 0) {
    call.fail(fmt::format("{} channels and {} filters are not multiples of its {} groups", image.channels, filters.out,
                          filters.groups));
    return;
  }
  std::int64_t kernel = saturating_product(image.channels / filters.groups, filters.out);
  for (const SlidingWindow& window : windows) kernel = saturating_product(kernel, window.kernel);
  call.weights({kernel, filters.has_bias ? filters.out : 0});

  const SlidingWindow& width = windows.back();
  const SlidingWindow height = windows.size() > 1 ? windows[windows.size() - 2] : SlidingWindow{};
  Parameters parameters{
      {"batch", image.batch},     {"channels", image.channels}, {"out", filters.out},
      {"height", height.in},      {"width", width.in},          {"kernel", height.kernel},
      {"stride", height.stride},  {"padding", height.padding},  {"dilation", height.dilation},
      {"groups", filters.groups}, {"bias", filters.has_bias},   {"channels_last", image.is_channels_last}};
  set_width(parameters, height, width);
  if (!height.is_even || !width.is_even) {
    parameters.set("out_height", height.out);
    parameters.set("out_width", width.out);
  }
  if (windows.size() == 3) {
    parameters.set("depth", windows.front().in);
    parameters.set("kernel_depth", windows.front().kernel);
    parameters.set("out_depth", windows.front().out);
  }
  if (filters.is_transposed) parameters.set("transposed", 1);
  call.emit(Kind::convolution, "", std::move(parameters));
}

template <std::size_t kSides>
std::vector<Shape> convolution(LayerCall& call) {
  const Image image = image_of(call, kSides);
  const std::vector<SlidingWindow> windows = windows_of(call, image);
  const Filters filters{call.size("filters"), call.size_or("groups", 1), call.flag("use_bias", true)};
  emit_convolution(call, image, windows, filters);
  Shape out = image.with(windows, filters.out);
  call.activation(call.word("activation"), out, image.is_channels_last ? -1 : 1);
  return {std::move(out)};
}

template <std::size_t kSides>
std::vector<Shape> transposed(LayerCall& call) {
  const Image image = image_of(call, kSides);
  const std::vector<std::int64_t> kernel = call.factors("kernel_size", kSides, 1);
  const std::vector<std::int64_t> stride = call.factors("strides", kSides, 1);
  const std::vector<std::int64_t> dilation = call.factors("dilation_rate", kSides, 1);
  const bool pads_output = call.option("output_padding") != nullptr;
  std::vector<std::int64_t> more = call.axes("output_padding");  // empty if absent
  more.resize(kSides, more.empty() ? 0 : more.front());
  const Padding padding = call.padding();
  std::vector<SlidingWindow> windows;
  for (std::size_t i = 0; i < kSides; ++i) {
    const std::optional<std::int64_t> padded =
        pads_output ? std::optional(std::clamp<std::int64_t>(more[i], 0, kMaxFactor)) : std::nullopt;
    windows.push_back(transposed_window(image.sides[i], kernel[i], stride[i], dilation[i], padding, padded));
  }
  const Filters filters{call.size("filters"), call.size_or("groups", 1), call.flag("use_bias", true), true};
  emit_convolution(call, image, windows, filters);
  Shape out = image.with(windows, filters.out);
  call.activation(call.word("activation"), out, image.is_channels_last ? -1 : 1);
  return {std::move(out)};
}

template <std::size_t kSides>
std::vector<Shape> depthwise(LayerCall& call) {
  const Image image = image_of(call, kSides);
  const std::vector<SlidingWindow> windows = windows_of(call, image);
  const std::int64_t out_channels = saturating_product(image.channels, call.size_or("depth_multiplier", 1));
  emit_convolution(call, image, windows, {out_channels, image.channels, call.flag("use_bias", true)});
  Shape out = image.with(windows, out_channels);
  call.activation(call.word("activation"), out, image.is_channels_last ? -1 : 1);
  return {std::move(out)};
}

// A depthwise convolution, then a pointwise one.
template <std::size_t kSides>
std::vector<Shape> separable(LayerCall& call) {
  Image image = image_of(call, kSides);
  const std::vector<SlidingWindow> windows = windows_of(call, image);
  const std::int64_t between = saturating_product(image.channels, call.size_or("depth_multiplier", 1));
  const std::int64_t filters = call.size("filters");
  emit_convolution(call, image, windows, {between, image.channels, false});
  image.channels = between;
  std::vector<SlidingWindow> points;
  points.reserve(windows.size());
  for (const SlidingWindow& window : windows) points.push_back(sliding_window(window.out, 1, 1, 1, Padding::valid));
  emit_convolution(call, image, points, {filters, 1, call.flag("use_bias", true)});
  Shape out = image.with(points, filters);
  call.activation(call.word("activation"), out, image.is_channels_last ? -1 : 1);
  return {std::move(out)};
}

constexpr NamedRule kRules[] = {
    {"Conv1D", convolution<1>},
    {"Conv2D", convolution<2>},
    {"Conv3D", convolution<3>},
    {"Convolution1D", convolution<1>},
    {"Convolution2D", convolution<2>},
    {"Convolution3D", convolution<3>},
    {"Conv1DTranspose", transposed<1>},
    {"Conv2DTranspose", transposed<2>},
    {"Conv3DTranspose", transposed<3>},
    {"DepthwiseConv1D", depthwise<1>},
    {"DepthwiseConv2D", depthwise<2>},
    {"SeparableConv1D", separable<1>},
    {"SeparableConv2D", separable<2>},
    {"SeparableConvolution1D", separable<1>},
    {"SeparableConvolution2D", separable<2>},
};

}  // namespace

std::span<const NamedRule> convolution_rules() { return kRules; }

}  // namespace joulemap::predict::keras
