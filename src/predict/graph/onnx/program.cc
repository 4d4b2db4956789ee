// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/onnx/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace joulemap::predict::onnx {

std::int64_t product_of_sizes(const Sizes& sizes, std::size_t begin, std::size_t end) {
  std::int64_t product = 1;
  for (std::size_t i = begin; i < std::min(end, sizes.size()); ++i) {
    if (sizes[i] <= 0) return 0;
    if (sizes[i] > kMaxElements / product) product = kMaxElements + 1;
    if (product <= kMaxElements) product *= sizes[i];
  }
  return product;
}

std::int64_t onnx_element_count(const Sizes& sizes) { return product_of_sizes(sizes, 0, sizes.size()); }

bool are_sizes_possible(const Sizes& sizes) {
  if (sizes.size() > kMaxOnnxDimensions) return false;
  Sizes positive_sizes = sizes;
  for (std::int64_t& size : positive_sizes) {
    if (size < 0) return false;
    size = std::max<std::int64_t>(size, 1);
  }
  return onnx_element_count(positive_sizes) <= kMaxElements;
}

std::string sizes_text(const Sizes& sizes) {
  return sizes.empty() ? "a single number" : fmt::format("{}", fmt::join(sizes, "x"));
}

bool is_layout_change(std::string_view type) {
  static constexpr std::array<std::string_view, 10> kLayoutChangeTypes = {
      "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Cast", "CastLike", "Expand", "Slice"};
  return std::find(kLayoutChangeTypes.begin(), kLayoutChangeTypes.end(), type) != kLayoutChangeTypes.end();
}

}  // namespace joulemap::predict::onnx
