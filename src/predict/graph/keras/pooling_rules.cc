// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

struct ImageAxes {
  std::size_t first_spatial_axis = 1;  // index of the first spatial dimension
  std::size_t channel_axis = 0;
};

ImageAxes find_image_axes(LayerCall& call, std::size_t count) {
  call.require_dimension_count(count + 2, count + 2);
  return call.is_channels_last() ? ImageAxes{1, count + 1} : ImageAxes{2, 1};
}

// Kind::pooling has two dimensions, so the depth is folded into the height, with the same number of elements and sums.
SlidingWindow fold_depth_into_height(const std::vector<SlidingWindow>& windows) {
  if (windows.size() == 1) return {};
  SlidingWindow height = windows[windows.size() - 2];
  if (windows.size() == 2) return height;
  const SlidingWindow& depth = windows.front();
  height.input_size = saturating_product(height.input_size, depth.input_size);
  height.kernel = saturating_product(height.kernel, depth.kernel);
  height.stride = saturating_product(height.stride, depth.stride);
  height.output_size = saturating_product(height.output_size, depth.output_size);
  height.has_equal_padding = false;
  return height;
}

void emit_pooling(LayerCall& call, std::string_view operation_form, std::int64_t batch, std::int64_t channels,
                  const std::vector<SlidingWindow>& windows) {
  const SlidingWindow height = fold_depth_into_height(windows);
  const SlidingWindow& width = windows.back();
  OperationParameters parameters{
      {"batch", batch},          {"channels", channels},    {"height", height.input_size}, {"width", width.input_size},
      {"kernel", height.kernel}, {"stride", height.stride}, {"padding", height.padding}};
  if (width.kernel != height.kernel) parameters.set("kernel_width", width.kernel);
  if (width.stride != height.stride) parameters.set("stride_width", width.stride);
  if (width.padding != height.padding) parameters.set("padding_width", width.padding);
  if (!height.has_equal_padding || !width.has_equal_padding) {
    parameters.set("out_height", height.output_size);
    parameters.set("out_width", width.output_size);
  }
  call.emit_operation(Kind::pooling, operation_form, std::move(parameters));
}

enum class PoolingForm : std::uint8_t { max, avg };

template <PoolingForm kForm, std::size_t kSides>
std::vector<Shape> apply_pooling(LayerCall& call) {
  const ImageAxes sides = find_image_axes(call, kSides);
  Shape out = call.input_shape();
  if (out.size() != kSides + 2) return {out};
  const std::vector<std::int64_t> kernel = call.per_dimension_option("pool_size", kSides, 2);
  const bool has_strides = call.find_option("strides") != nullptr;
  const std::vector<std::int64_t> stride = has_strides ? call.per_dimension_option("strides", kSides, 1) : kernel;
  const Padding padding = call.padding_option();
  std::vector<SlidingWindow> windows;
  for (std::size_t i = 0; i < kSides; ++i) {
    windows.push_back(make_sliding_window(out[sides.first_spatial_axis + i], kernel[i], stride[i], 1, padding));
    if (windows.back().output_size < 1) {
      call.set_failure(
          fmt::format("its window of {} does not fit into {}", kernel[i], out[sides.first_spatial_axis + i]),
          "set a larger input with --input");
    }
    out[sides.first_spatial_axis + i] = windows.back().output_size;
  }
  emit_pooling(call, kForm == PoolingForm::max ? "max" : "avg", out.front(), out[sides.channel_axis], windows);
  return {std::move(out)};
}

// Maximum and mean have the same form: each channel is reduced to one element.
template <std::size_t kSides>
std::vector<Shape> apply_global_pooling(LayerCall& call) {
  const ImageAxes sides = find_image_axes(call, kSides);
  const Shape input_shape = call.input_shape();
  if (input_shape.size() != kSides + 2) return {input_shape};
  const std::size_t last_spatial_axis = sides.first_spatial_axis + kSides - 1;
  call.emit_operation(Kind::pooling, "adaptive",
                      {{"batch", input_shape.front()},
                       {"channels", input_shape[sides.channel_axis]},
                       {"height", element_count(input_shape, sides.first_spatial_axis, last_spatial_axis)},
                       {"width", input_shape[last_spatial_axis]},
                       {"out", 1}});
  if (!call.boolean_option("keepdims", false)) return {{input_shape.front(), input_shape[sides.channel_axis]}};
  Shape out = input_shape;
  std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(sides.first_spatial_axis), kSides, 1);
  return {std::move(out)};
}

// Pooling to a given output size, which may be more than one element.
template <std::size_t kSides>
std::vector<Shape> apply_adaptive_pooling(LayerCall& call) {
  const ImageAxes sides = find_image_axes(call, kSides);
  Shape out = call.input_shape();
  if (out.size() != kSides + 2) return {out};
  const std::vector<std::int64_t> target = call.per_dimension_option("output_size", kSides, 1);
  const std::size_t last_spatial_axis = sides.first_spatial_axis + kSides - 1;
  const std::int64_t height = element_count(out, sides.first_spatial_axis, last_spatial_axis);
  const std::int64_t width = out[last_spatial_axis];
  for (std::size_t i = 0; i < kSides; ++i) out[sides.first_spatial_axis + i] = target[i];
  call.emit_operation(Kind::pooling, "adaptive",
                      {{"batch", out.front()},
                       {"channels", out[sides.channel_axis]},
                       {"height", height},
                       {"width", width},
                       {"out", target.back()},
                       {"out_height", element_count(out, sides.first_spatial_axis, last_spatial_axis)},
                       {"out_width", target.back()}});
  return {std::move(out)};
}

constexpr LayerClassRule kPoolingLayerRules[] = {
    {"MaxPooling1D", apply_pooling<PoolingForm::max, 1>},     {"MaxPooling2D", apply_pooling<PoolingForm::max, 2>},
    {"MaxPooling3D", apply_pooling<PoolingForm::max, 3>},     {"MaxPool1D", apply_pooling<PoolingForm::max, 1>},
    {"MaxPool2D", apply_pooling<PoolingForm::max, 2>},        {"MaxPool3D", apply_pooling<PoolingForm::max, 3>},
    {"AveragePooling1D", apply_pooling<PoolingForm::avg, 1>}, {"AveragePooling2D", apply_pooling<PoolingForm::avg, 2>},
    {"AveragePooling3D", apply_pooling<PoolingForm::avg, 3>}, {"AvgPool1D", apply_pooling<PoolingForm::avg, 1>},
    {"AvgPool2D", apply_pooling<PoolingForm::avg, 2>},        {"AvgPool3D", apply_pooling<PoolingForm::avg, 3>},
    {"GlobalAveragePooling1D", apply_global_pooling<1>},      {"GlobalAveragePooling2D", apply_global_pooling<2>},
    {"GlobalAveragePooling3D", apply_global_pooling<3>},      {"GlobalAvgPool2D", apply_global_pooling<2>},
    {"GlobalMaxPooling1D", apply_global_pooling<1>},          {"GlobalMaxPooling2D", apply_global_pooling<2>},
    {"GlobalMaxPooling3D", apply_global_pooling<3>},          {"GlobalMaxPool2D", apply_global_pooling<2>},
    {"AdaptiveAveragePooling1D", apply_adaptive_pooling<1>},  {"AdaptiveAveragePooling2D", apply_adaptive_pooling<2>},
    {"AdaptiveAveragePooling3D", apply_adaptive_pooling<3>},  {"AdaptiveMaxPooling1D", apply_adaptive_pooling<1>},
    {"AdaptiveMaxPooling2D", apply_adaptive_pooling<2>},      {"AdaptiveMaxPooling3D", apply_adaptive_pooling<3>},
};

}  // namespace

std::span<const LayerClassRule> pooling_rules() { return kPoolingLayerRules; }

}  // namespace joulemap::predict::keras
