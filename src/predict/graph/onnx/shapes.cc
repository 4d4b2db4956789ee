// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/onnx/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"

namespace joulemap::predict::onnx {
namespace {

const NodeRule* find_node_rule(std::string_view type, std::string_view domain) {
  for (const auto find : {&find_elementwise_node_rule, &find_layout_node_rule, &find_indexing_node_rule,
                          &find_convolution_and_matmul_rule, &find_miscellaneous_node_rule}) {
    if (const NodeRule* const matching_rule = find(type, domain)) return matching_rule;
  }
  return nullptr;
}

Error unknown_node_error(const Node& node) {
  if (node.operator_domain.empty()) return invalid_node("an unsupported operation");
  return invalid_node("an unsupported operation of the domain " + quoted(node.operator_domain));
}

Status check_output_sizes(const ShapeInference& shape_inference) {
  for (const Value& output : shape_inference.outputs) {
    if (!output.sizes) continue;
    if (output.sizes->size() > kMaxOnnxDimensions) return invalid_node("a tensor of more than 64 dimensions");
    for (const std::int64_t size : *output.sizes) {
      if (size < 0) return invalid_node("a dimension of " + std::to_string(size));
    }
  }
  return Done{};
}

// Index of the dimension of a reshaped tensor that contains the batch. In the input, the batch began after
// `values_at_file_batch` elements (the product of the dimensions before it), within a dimension that ended at
// `batch_range_end`. Prefers a dimension in this range that equals the batch. Otherwise a dimension that covers the
// batch: one that begins at `values_at_file_batch`, as with heads, unless it is the last one, which contains features;
// else one that begins earlier, as with tokens. sizes.size() if there is none.
std::size_t find_batch_axis(const Sizes& sizes, std::int64_t batch_begin, std::int64_t batch,
                            std::int64_t batch_range_end) {
  std::size_t aligned_axis = sizes.size();
  std::size_t covering_axis = sizes.size();
  std::int64_t begin = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t end = product_of_sizes({begin, sizes[i]}, 0, 2);
    if (begin >= batch_begin && end <= batch_range_end && sizes[i] == batch) return i;
    const bool covers_batch = begin <= batch_begin && end >= product_of_sizes({batch_begin, batch}, 0, 2);
    if (covers_batch && begin == batch_begin && aligned_axis == sizes.size()) aligned_axis = i;
    if (covers_batch && begin < batch_begin) covering_axis = i;
    begin = end;
  }
  const bool is_last = aligned_axis + 1 == sizes.size() && sizes.size() > 1;
  return aligned_axis < sizes.size() && (!is_last || covering_axis == sizes.size()) ? aligned_axis : covering_axis;
}

}  // namespace

Error invalid_node(std::string message) { return {ErrorCode::malformed, std::move(message), ""}; }

std::optional<Sizes> ShapeInference::constant_input_integers(std::size_t position) const {
  if (!has_input(position) || !inputs[position]->constant_values) return std::nullopt;
  Sizes integers;
  for (const double number : *inputs[position]->constant_values) {
    constexpr auto kMost = static_cast<double>(kMaxElements);
    integers.push_back(std::isnan(number) ? 0 : static_cast<std::int64_t>(std::clamp(number, -kMost, kMost)));
  }
  return integers;
}

Result<std::size_t> resolve_axis(std::int64_t axis, std::size_t rank) {
  const auto dimensions = static_cast<std::int64_t>(rank);
  if (axis < -dimensions || axis >= dimensions)
    return invalid_node(fmt::format("axis {} is out of range for {} dimensions", axis, rank));
  return static_cast<std::size_t>(axis < 0 ? axis + dimensions : axis);
}

Result<Sizes> broadcast_sizes(const Sizes& left_sizes, const Sizes& right_sizes) {
  Sizes combined_sizes = left_sizes.size() >= right_sizes.size() ? left_sizes : right_sizes;
  const Sizes& shorter_sizes = left_sizes.size() >= right_sizes.size() ? right_sizes : left_sizes;
  const std::size_t axis_offset = combined_sizes.size() - shorter_sizes.size();
  for (std::size_t i = 0; i < shorter_sizes.size(); ++i) {
    std::int64_t& size = combined_sizes[axis_offset + i];
    if (size != shorter_sizes[i] && size != 1 && shorter_sizes[i] != 1) {
      return invalid_node(fmt::format("{} is incompatible with {}", sizes_text(left_sizes), sizes_text(right_sizes)));
    }
    if (size == 1) size = shorter_sizes[i];
  }
  return combined_sizes;
}

Result<std::vector<std::size_t>> read_axes(const ShapeInference& shape_inference, std::size_t input, std::size_t rank) {
  Sizes axis_numbers = integers_attribute(shape_inference.node, "axes");
  if (shape_inference.has_input(input)) {
    const std::optional<Sizes> numbers = shape_inference.constant_input_integers(input);
    if (!numbers) return invalid_node("axes computed from data");
    axis_numbers = *numbers;
  }
  std::vector<std::size_t> axes;
  for (const std::int64_t number : axis_numbers) {
    const Result<std::size_t> axis = resolve_axis(number, rank);
    if (!axis) return axis.error();
    axes.push_back(*axis);
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

Result<Sizes> rescale_target_to_batch(const ShapeInference& shape_inference, Sizes target) {
  if (shape_inference.values_at_file_batch == nullptr || shape_inference.values_at_file_batch->inputs.empty() ||
      shape_inference.values_at_file_batch->outputs.empty())
    return target;
  const Value* const input = shape_inference.values_at_file_batch->inputs[0];
  const Value* const output = shape_inference.values_at_file_batch->outputs[0];
  if (input == nullptr || output == nullptr || !input->sizes || !output->sizes) return target;
  const bool is_target_stored =
      shape_inference.values_at_file_batch->inputs.size() > 1 &&
      shape_inference.values_at_file_batch->inputs[1] != nullptr && shape_inference.has_input(1) &&
      shape_inference.values_at_file_batch->inputs[1]->constant_values == shape_inference.inputs[1]->constant_values;
  if (!is_target_stored) return target;  // the target was computed from sizes, so it contains the new batch
  const Sizes& old_input_sizes = *input->sizes;
  const Sizes& old_output_sizes = *output->sizes;
  const Sizes& new_input_sizes = shape_inference.input_sizes(0);
  // Exactly one dimension must have changed, which contains the batch. The number of elements before it is the same in
  // input and output.
  if (old_input_sizes.size() != new_input_sizes.size() || old_output_sizes.size() != target.size()) return target;
  const auto first_difference = std::mismatch(old_input_sizes.begin(), old_input_sizes.end(), new_input_sizes.begin());
  if (first_difference.first == old_input_sizes.end()) return target;
  const auto batch_axis = static_cast<std::size_t>(first_difference.first - old_input_sizes.begin());
  const std::int64_t old_size = old_input_sizes[batch_axis];
  const std::int64_t new_size = new_input_sizes[batch_axis];
  if (!std::equal(first_difference.first + 1, old_input_sizes.end(), first_difference.second + 1) || old_size == 0 ||
      new_size == 0) {
    return target;
  }
  // If the dimension contains more than the batch, as with windows, the batch is its outer factor.
  const std::int64_t common_divisor = std::gcd(old_size, new_size);
  const std::int64_t old_batch = old_size / common_divisor;
  const std::int64_t new_batch = new_size / common_divisor;
  const std::size_t position = find_batch_axis(old_output_sizes, product_of_sizes(old_input_sizes, 0, batch_axis),
                                               old_batch, product_of_sizes(old_input_sizes, 0, batch_axis + 1));
  if (position < old_output_sizes.size() && old_output_sizes[position] % old_batch == 0) {
    target = old_output_sizes;
    target[position] = product_of_sizes({old_output_sizes[position] / old_batch, new_batch}, 0, 2);
    return target;
  }
  return Error{ErrorCode::unsupported,
               fmt::format("a reshape of {} to {} contains the file's batch, and its dimension is ambiguous",
                           sizes_text(old_input_sizes), sizes_text(old_output_sizes)),
               "export the network with a dynamic batch, or predict it at the batch of the file"};
}

Status infer_shapes(ShapeInference& shape_inference) {
  const NodeRule* const matching_rule =
      find_node_rule(shape_inference.node.operator_type, shape_inference.node.operator_domain);
  if (matching_rule == nullptr) return unknown_node_error(shape_inference.node);
  for (std::size_t position = 0; position < matching_rule->min_inputs; ++position) {
    if (!shape_inference.has_input(position)) return invalid_node(fmt::format("input {} is missing", position + 1));
  }
  if (Status status = matching_rule->infer_shapes(shape_inference); !status) return status;
  if (Status status = check_output_sizes(shape_inference); !status) return status;
  fold_constant_outputs(shape_inference);
  return Done{};
}

}  // namespace joulemap::predict::onnx
