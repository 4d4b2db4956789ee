// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/keras/shape.h"

#include <fmt/format.h>

#include <algorithm>

namespace joulemap::predict::keras {

std::int64_t saturating_product(std::int64_t one, std::int64_t other) {
  if (one == 0 || other == 0) return 0;
  return one > kMaxElements / other ? kSaturatedElementCount : one * other;
}

std::int64_t element_count(const Shape& shape) { return element_count(shape, 0, shape.size()); }

std::int64_t element_count(const Shape& shape, std::size_t from, std::size_t to) {
  std::int64_t product = 1;
  for (std::size_t i = from; i < std::min(to, shape.size()); ++i) product = saturating_product(product, shape[i]);
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

std::optional<Shape> broadcast_shapes(const Shape& one, const Shape& other) {
  const Shape& longer = one.size() >= other.size() ? one : other;
  const Shape& shorter = one.size() >= other.size() ? other : one;
  Shape out = longer;
  const std::size_t offset = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    const std::int64_t size = shorter[i];
    if (out[offset + i] != size && out[offset + i] != 1 && size != 1) return std::nullopt;
    out[offset + i] = std::max(out[offset + i], size);
  }
  return out;
}

SlidingWindow make_sliding_window(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                                  Padding padding) {
  SlidingWindow window{in, kernel, stride, dilation};
  const std::int64_t reach = dilation * (kernel - 1) + 1;
  std::int64_t padded = 0;  // sum of the padding on both sides
  if (padding == Padding::same) {
    window.output_size = (in + stride - 1) / stride;
    padded = std::max<std::int64_t>(0, (window.output_size - 1) * stride + reach - in);
  } else {
    padded = padding == Padding::causal ? reach - 1 : 0;
    window.output_size = in + padded < reach ? 0 : (in + padded - reach) / stride + 1;
  }
  window.padding = padded / 2;
  const std::int64_t room = in + 2 * window.padding - reach;
  window.has_equal_padding = room >= 0 && room / stride + 1 == window.output_size;
  return window;
}

SlidingWindow make_transposed_window(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                                     Padding padding, std::optional<std::int64_t> output_padding) {
  SlidingWindow window{in, kernel, stride, dilation};
  const std::int64_t reach = dilation * (kernel - 1) + 1;
  window.has_equal_padding = false;  // the output size is always stated, because it exceeds the input's
  window.padding = padding == Padding::same ? reach / 2 : 0;
  if (output_padding) {
    window.output_size = std::max<std::int64_t>(0, (in - 1) * stride + reach - 2 * window.padding + *output_padding);
  } else {
    window.output_size = in * stride + (padding == Padding::same ? 0 : std::max<std::int64_t>(reach - stride, 0));
  }
  return window;
}

}  // namespace joulemap::predict::keras
