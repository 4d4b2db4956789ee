// SPDX-License-Identifier: Apache-2.0
#include "scopes/operation_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>
#include <span>

namespace joulemap::scopes {
namespace {

constexpr std::string_view kDefaultTensorType = "float32";

std::int64_t product_of_sizes(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies());
}

std::vector<std::int64_t> parse_tensor_sizes(std::string_view text) {
  std::vector<std::int64_t> sizes;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    std::int64_t size = 0;
    if (std::from_chars(text.data(), text.data() + end, size).ec == std::errc()) sizes.push_back(size);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return sizes;
}

std::string format_tensor_sizes(const TensorShape& tensor) { return fmt::format("[{}]", fmt::join(tensor.sizes, ",")); }

const TensorShape& largest_tensor(const std::vector<TensorShape>& tensors) {
  return *std::ranges::max_element(tensors, {}, &TensorShape::element_count);
}

bool has_linear_layer_weight(std::string_view operation) {
  return operation.find("linear") != std::string_view::npos || operation.find("Linear") != std::string_view::npos;
}

bool has_bias_first(std::string_view operation) {
  return operation.find("addm") != std::string_view::npos || operation.find("addb") != std::string_view::npos;
}

// Sizes of a matrix product: batch, rows, columns, inner dimension. If only the gradient of the result is known (backward
// pass), the inner dimension is missing. Empty if the shapes are unknown.
std::vector<std::int64_t> matrix_product_sizes(std::string_view operation, const std::vector<TensorShape>& tensors) {
  const std::size_t left_index = has_bias_first(operation) && tensors.size() > 2 ? 1 : 0;
  const std::vector<std::int64_t>& left_sizes = tensors[left_index].sizes;
  if (left_sizes.empty()) return {};
  if (tensors.size() < left_index + 2 || tensors[left_index + 1].sizes.size() < 2) {
    const std::int64_t columns = left_sizes.back();
    return {columns > 0 ? product_of_sizes(left_sizes) / columns : 0, columns};
  }
  const std::vector<std::int64_t>& right_sizes = tensors[left_index + 1].sizes;
  const std::int64_t inner_size = left_sizes.back();
  const std::int64_t columns = has_linear_layer_weight(operation) ? right_sizes.front() : right_sizes.back();
  const std::int64_t rows = inner_size > 0 ? product_of_sizes(left_sizes) / inner_size : 0;
  const std::int64_t batch =
      right_sizes.size() > 2 ? product_of_sizes(std::span(right_sizes).first(right_sizes.size() - 2)) : 1;
  if (batch > 1 && rows % batch == 0) return {batch, rows / batch, columns, inner_size};
  return {rows, columns, inner_size};
}

}  // namespace

std::int64_t TensorShape::element_count() const { return product_of_sizes(sizes); }

std::vector<TensorShape> parse_tensor_text(std::string_view text) {
  std::vector<TensorShape> tensors;
  while (!text.empty()) {
    const std::size_t bracket = text.find('[');
    const std::size_t end = text.find(']', bracket == std::string_view::npos ? 0 : bracket);
    if (bracket == std::string_view::npos || end == std::string_view::npos) break;
    std::string_view type = text.substr(0, bracket);
    if (const std::size_t blank = type.rfind(' '); blank != std::string_view::npos) type.remove_prefix(blank + 1);
    tensors.push_back({std::string(type.empty() ? kDefaultTensorType : type),
                       parse_tensor_sizes(text.substr(bracket + 1, end - bracket - 1))});
    text.remove_prefix(end + 1);
  }
  return tensors;
}

OperationShape shape_of_operation(OperationKind kind, std::string_view operation, std::string_view tensors_text) {
  const std::vector<TensorShape> tensors = parse_tensor_text(tensors_text);
  if (tensors.empty()) return {};
  const TensorShape& largest_tensor_shape = largest_tensor(tensors);
  OperationShape shape{.element_count = static_cast<double>(largest_tensor_shape.element_count()),
                       .type = largest_tensor_shape.type};
  if (kind == OperationKind::matmul) {
    shape.sizes = matrix_product_sizes(operation, tensors);
    shape.text = shape.key = fmt::format("{}", fmt::join(shape.sizes, "x"));
  } else if (kind == OperationKind::convolution) {
    shape.text = format_tensor_sizes(tensors.front());
    shape.sizes = tensors.front().sizes;
    if (tensors.size() > 1) {
      shape.text += " " + format_tensor_sizes(tensors[1]);
      shape.sizes.insert(shape.sizes.end(), tensors[1].sizes.begin(), tensors[1].sizes.end());
    }
    shape.key = shape.text;
  } else {
    shape.text = format_tensor_sizes(largest_tensor_shape);
    shape.sizes = largest_tensor_shape.sizes;
    shape.key = fmt::format("{}", largest_tensor_shape.element_count());  // reshaped tensors are equal work
  }
  return shape;
}

}  // namespace joulemap::scopes
