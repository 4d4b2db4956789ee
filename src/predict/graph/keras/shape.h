// SPDX-License-Identifier: Apache-2.0
//
// Tensor shapes and their arithmetic: element counts, axes, broadcasts, sliding windows. Pure. Products saturate at
// kSaturatedElementCount instead of overflowing, so that one check after the last product is enough. Input sizes are at
// most kMaxElements, factors at most kMaxWindowFactor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "predict/graph/graph.h"

namespace joulemap::predict::keras {

using Shape = std::vector<std::int64_t>;

inline constexpr std::int64_t kSaturatedElementCount = kMaxElements + 1;
inline constexpr std::int64_t kMaxWindowFactor = 65536;  // limit of kernel sizes, strides and dilations
inline constexpr std::size_t kMaxTensorDimensions = 16;

// Product of two numbers of at least 0; saturates at kSaturatedElementCount.
std::int64_t saturating_product(std::int64_t left_factor, std::int64_t right_factor);
std::int64_t element_count(const Shape& shape);
std::int64_t element_count(const Shape& shape, std::size_t begin_axis,
                           std::size_t end_axis);  // of the dimensions [begin_axis, end_axis)

std::string shape_text(const Shape& shape);  // "8x224x224x3"; "a number" for a scalar

// Resolves a Keras axis, which may be negative; empty if the shape has no such axis.
std::optional<std::size_t> normalize_axis_index(std::int64_t axis, std::size_t dimensions);

// The broadcast shape of both; empty if they do not match.
std::optional<Shape> broadcast_shapes(const Shape& left_shape, const Shape& right_shape);

enum class Padding : std::uint8_t { valid, same, causal };

// A kernel that slides along one dimension.
struct SlidingWindow {
  std::int64_t input_size = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t output_size = 1;   // 0 if the kernel does not fit
  std::int64_t padding = 0;       // per side; the smaller one if they differ
  bool has_equal_padding = true;  // whether `output_size` follows from the other sizes and `padding`
};
SlidingWindow make_sliding_window(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                                  Padding padding);
// The window of a transposed convolution, whose `output_size` is larger than `input_size`; with Keras's output_padding
// if given.
SlidingWindow make_transposed_window(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                                     Padding padding, std::optional<std::int64_t> output_padding);

}  // namespace joulemap::predict::keras
