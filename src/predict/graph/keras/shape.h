// SPDX-License-Identifier: Apache-2.0
//
// Sizes of tensors and the arithmetic on them: elements, axes, windows that slide, axes that are left when some are taken
// away. Pure. Products stop at kTooMany instead of overflowing, so that a check after the last of them finds what is too
// large; sizes that come in are at most kMostElements, factors at most kMostFactor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "predict/graph/graph.h"

namespace joulemap::predict::keras {

using Shape = std::vector<std::int64_t>;

inline constexpr std::int64_t kTooMany = kMostElements + 1;
inline constexpr std::int64_t kMostFactor = 65536;  // of kernels, strides, dilations: nobody has larger ones
inline constexpr std::size_t kMostDimensions = 16;

// Both at least 0; kTooMany where it would be more.
std::int64_t times(std::int64_t one, std::int64_t other);
std::int64_t elements(const Shape& shape);
std::int64_t elements(const Shape& shape, std::size_t from, std::size_t to);  // of the dimensions [from, to)

std::string text(const Shape& shape);  // "8x224x224x3"; of a number "a number"

// An axis as Keras writes it, negative from behind; nothing where the shape has no such axis.
std::optional<std::size_t> axis_of(std::int64_t axis, std::size_t dimensions);

// What both become when they are added; nothing where they do not fit.
std::optional<Shape> broadcast(const Shape& one, const Shape& other);

enum class Padding : std::uint8_t { valid, same, causal };

// A kernel that slides along one dimension.
struct Window {
  std::int64_t in = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t out = 1;      // 0 where the kernel does not fit
  std::int64_t padding = 0;  // of each side; where they differ, of the smaller one
  bool is_even = true;       // `out` is what sizes and padding say
};
Window slide(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t dilation, Padding padding);
// The other way round, as transposed convolutions do; output_padding as Keras has it, where it has.
Window slide_back(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t dilation, Padding padding,
                  std::optional<std::int64_t> output_padding);

}  // namespace joulemap::predict::keras
