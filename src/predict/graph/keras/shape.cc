// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/keras/shape.h"

#include <fmt/format.h>

#include <algorithm>

namespace joulemap::predict::keras {

std::int64_t saturating_product(std::int64_t left_factor, std::int64_t right_factor) {
  if (left_factor == 0 || right_factor == 0) return 0;
  return left_factor > kMaxElements / right_factor ? kSaturatedElementCount : left_factor * right_factor;
}

std::int64_t element_count(const Shape& shape) { return element_count(shape, 0, shape.size()); }

std::int64_t element_count(const Shape& shape, std::size_t begin_axis, std::size_t end_axis) {
  std::int64_t product = 1;
  for (std::size_t i = begin_axis; i < std::min(end_axis, shape.size()); ++i)
    product = saturating_product(product, shape[i]);
  return product;
}

std::string shape_text(const Shape& shape) {
  if (shape.empty()) return "a number";
  std::string out;
  for (const std::int64_t size : shape) out += fmt::format("{}{}", out.empty() ? "" : "x", size);
  return out;
}

std::optional<std::size_t> normalize_axis_index(std::int64_t axis, std::size_t dimensions) {
  const auto count = static_cast<std::int64_t>(dimensions);
  if (axis < -count || axis >= count) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + count : axis);
}

std::optional<Shape> broadcast_shapes(const Shape& left_shape, const Shape& right_shape) {
  const Shape& longer_shape = left_shape.size() >= right_shape.size() ? left_shape : right_shape;
  const Shape& shorter_shape = left_shape.size() >= right_shape.size() ? right_shape : left_shape;
  Shape out = longer_shape;
  const std::size_t offset = longer_shape.size() - shorter_shape.size();
  for (std::size_t i = 0; i < shorter_shape.size(); ++i) {
    const std::int64_t size = shorter_shape[i];
    if (out[offset + i] != size && out[offset + i] != 1 && size != 1) return std::nullopt;
    out[offset + i] = std::max(out[offset + i], size);
  }
  return out;
}

SlidingWindow make_sliding_window(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                                  Padding padding) {
  SlidingWindow window{in, kernel, stride, dilation};
  const std::int64_t kernel_extent = dilation * (kernel - 1) + 1;
  std::int64_t total_padding = 0;  // sum of the padding on both sides
  if (padding == Padding::same) {
    window.output_size = (in + stride - 1) / stride;
    total_padding = std::max<std::int64_t>(0, (window.output_size - 1) * stride + kernel_extent - in);
  } else {
    total_padding = padding == Padding::causal ? kernel_extent - 1 : 0;
    window.output_size = in + total_padding < kernel_extent ? 0 : (in + total_padding - kernel_extent) / stride + 1;
  }
  window.padding = total_padding / 2;
  const std::int64_t max_window_offset = in + 2 * window.padding - kernel_extent;
  window.has_equal_padding = max_window_offset >= 0 && max_window_offset / stride + 1 == window.output_size;
  return window;
}

SlidingWindow make_transposed_window(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                                     Padding padding, std::optional<std::int64_t> output_padding) {
  SlidingWindow window{in, kernel, stride, dilation};
  const std::int64_t kernel_extent = dilation * (kernel - 1) + 1;
  window.has_equal_padding = false;  // the output size is always stated, because it exceeds the input's
  window.padding = padding == Padding::same ? kernel_extent / 2 : 0;
  if (output_padding) {
    window.output_size =
        std::max<std::int64_t>(0, (in - 1) * stride + kernel_extent - 2 * window.padding + *output_padding);
  } else {
    window.output_size =
        in * stride + (padding == Padding::same ? 0 : std::max<std::int64_t>(kernel_extent - stride, 0));
  }
  return window;
}

}  // namespace joulemap::predict::keras
