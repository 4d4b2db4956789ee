// SPDX-License-Identifier: Apache-2.0
//
// Shape inference of nodes that change the order, count or size of dimensions.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "predict/graph/onnx/shapes.h"

namespace joulemap::predict::onnx {
namespace {

// Resolves a reshape target: one dimension may be -1, the remainder. 0 copies the dimension of the input, unless
// `allows_zero_size`.
Status resolve_reshape_target(const Sizes& input_sizes, bool allows_zero_size, Sizes& target) {
  std::int64_t known_element_count = 1;
  std::size_t inferred_axis = target.size();
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && !allows_zero_size) target[i] = i < input_sizes.size() ? input_sizes[i] : 0;
    if (target[i] == -1) {
      inferred_axis = i;
    } else {
      known_element_count = product_of_sizes({known_element_count, target[i]}, 0, 2);
    }
  }
  const std::int64_t total_element_count = onnx_element_count(input_sizes);
  if (inferred_axis < target.size())
    target[inferred_axis] = known_element_count > 0 ? total_element_count / known_element_count : 0;
  if (onnx_element_count(target) != total_element_count) {
    return invalid_node(fmt::format("{} cannot be reshaped to {}", sizes_text(input_sizes), sizes_text(target)));
  }
  return Done{};
}

Status infer_reshape(ShapeInference& shape_inference) {
  const std::optional<Sizes> requested_target = shape_inference.constant_input_integers(1);
  if (!requested_target) return invalid_node("a target shape computed from data");
  Result<Sizes> target = rescale_target_to_batch(shape_inference, *requested_target);
  if (!target) return target.error();
  const bool was_rescaled = *target != *requested_target;
  Status status = resolve_reshape_target(shape_inference.input_sizes(0),
                                         integer_attribute(shape_inference.node, "allowzero", 0) != 0, *target);
  if (!status && was_rescaled) {
    *target = *requested_target;
    status = resolve_reshape_target(shape_inference.input_sizes(0),
                                    integer_attribute(shape_inference.node, "allowzero", 0) != 0, *target);
  }
  if (!status) return status;
  shape_inference.set_output_sizes(*std::move(target));
  return Done{};
}

Status infer_flatten(ShapeInference& shape_inference) {
  const Sizes& input_sizes = shape_inference.input_sizes(0);
  const std::int64_t axis_attribute = integer_attribute(shape_inference.node, "axis", 1);
  const auto rank = static_cast<std::int64_t>(input_sizes.size());
  const std::int64_t axis = axis_attribute < 0 ? axis_attribute + rank : axis_attribute;
  if (axis < 0 || axis > rank) return invalid_node("an invalid axis");
  const auto split_axis = static_cast<std::size_t>(axis);
  shape_inference.set_output_sizes(
      {product_of_sizes(input_sizes, 0, split_axis), product_of_sizes(input_sizes, split_axis, input_sizes.size())});
  return Done{};
}

Status infer_squeeze(ShapeInference& shape_inference) {
  const Sizes& input_sizes = shape_inference.input_sizes(0);
  const Result<std::vector<std::size_t>> axes = read_axes(shape_inference, 1, input_sizes.size());
  if (!axes) return axes.error();
  const bool removes_unit_axes = axes->empty() && !shape_inference.has_input(1);
  Sizes output_sizes;
  for (std::size_t i = 0; i < input_sizes.size(); ++i) {
    const bool is_removed_axis =
        removes_unit_axes ? input_sizes[i] == 1 : std::binary_search(axes->begin(), axes->end(), i);
    if (is_removed_axis && input_sizes[i] != 1)
      return invalid_node(fmt::format("dimension {} of {} is not 1", i, sizes_text(input_sizes)));
    if (!is_removed_axis) output_sizes.push_back(input_sizes[i]);
  }
  shape_inference.set_output_sizes(std::move(output_sizes));
  return Done{};
}

Status infer_unsqueeze(ShapeInference& shape_inference) {
  const Sizes& input_sizes = shape_inference.input_sizes(0);
  const std::optional<Sizes> numbers = shape_inference.has_input(1) ? shape_inference.constant_input_integers(1)
                                                                    : integers_attribute(shape_inference.node, "axes");
  if (!numbers) return invalid_node("axes computed from data");
  const Result<std::vector<std::size_t>> axes = read_axes(shape_inference, 1, input_sizes.size() + numbers->size());
  if (!axes) return axes.error();
  Sizes output_sizes;
  std::size_t input_axis = 0;
  for (std::size_t i = 0; i < input_sizes.size() + axes->size(); ++i) {
    const bool is_added_axis = std::binary_search(axes->begin(), axes->end(), i);
    output_sizes.push_back(is_added_axis ? 1 : input_sizes[input_axis++]);
  }
  shape_inference.set_output_sizes(std::move(output_sizes));
  return Done{};
}

Status infer_transpose(ShapeInference& shape_inference) {
  const Sizes& input_sizes = shape_inference.input_sizes(0);
  const Sizes order = integers_attribute(shape_inference.node, "perm");
  Sizes sizes(input_sizes.rbegin(), input_sizes.rend());
  if (!order.empty()) {
    if (order.size() != input_sizes.size()) return invalid_node("a permutation with a different number of dimensions");
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Result<std::size_t> axis = resolve_axis(order[i], input_sizes.size());
      if (!axis) return axis.error();
      sizes[i] = input_sizes[*axis];
    }
    if (onnx_element_count(sizes) != onnx_element_count(input_sizes))
      return invalid_node("a permutation that omits dimensions");
  }
  shape_inference.set_output_sizes(std::move(sizes));
  return Done{};
}

Status infer_expand(ShapeInference& shape_inference) {
  const std::optional<Sizes> target = shape_inference.constant_input_integers(1);
  if (!target) return invalid_node("sizes computed from data");
  // A target that the file stores contains the file's batch, which is mostly 1 and broadcasts to any other.
  Result<Sizes> sizes = broadcast_sizes(shape_inference.input_sizes(0), *target);
  if (!sizes && shape_inference.values_at_file_batch != nullptr) {
    const Result<Sizes> rescaled_target = rescale_target_to_batch(shape_inference, *target);
    if (!rescaled_target) return rescaled_target.error();
    sizes = broadcast_sizes(shape_inference.input_sizes(0), *rescaled_target);
  }
  if (!sizes) return sizes.error();
  shape_inference.set_output_sizes(*std::move(sizes));
  return Done{};
}

Status infer_tile(ShapeInference& shape_inference) {
  const std::optional<Sizes> repeats = shape_inference.constant_input_integers(1);
  Sizes sizes = shape_inference.input_sizes(0);
  if (!repeats || repeats->size() != sizes.size()) return invalid_node("repeats computed from data");
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = product_of_sizes({sizes[i], (*repeats)[i]}, 0, 2);
  shape_inference.set_output_sizes(std::move(sizes));
  return Done{};
}

// Whether a dimension of an input differs between the file's batch and the requested one.
bool differs_from_file_batch(const ShapeInference& shape_inference, std::size_t position, std::size_t dimension) {
  if (position >= shape_inference.values_at_file_batch->inputs.size() ||
      shape_inference.values_at_file_batch->inputs[position] == nullptr)
    return false;
  const std::optional<Sizes>& sizes_at_file_batch = shape_inference.values_at_file_batch->inputs[position]->sizes;
  return sizes_at_file_batch && dimension < sizes_at_file_batch->size() &&
         (*sizes_at_file_batch)[dimension] != shape_inference.input_sizes(position)[dimension];
}

Status infer_concat(ShapeInference& shape_inference) {
  Sizes sizes = shape_inference.input_sizes(0);
  const Result<std::size_t> axis = resolve_axis(integer_attribute(shape_inference.node, "axis", 0), sizes.size());
  if (!axis) return axis.error();
  for (std::size_t position = 1; position < shape_inference.inputs.size(); ++position) {
    if (!shape_inference.has_input(position)) continue;
    const Sizes& part = shape_inference.input_sizes(position);
    if (part.size() != sizes.size()) return invalid_node("inputs with different numbers of dimensions");
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (i == *axis) {
        sizes[i] = std::min(kMaxElements + 1, sizes[i] + part[i]);
      } else if (sizes[i] != part[i]) {
        // A constant part, such as a class token, has the file's batch: it is repeated for the new batch.
        if (shape_inference.values_at_file_batch == nullptr)
          return invalid_node(fmt::format("{} cannot be concatenated with {}", sizes_text(sizes), sizes_text(part)));
        if (differs_from_file_batch(shape_inference, position, i)) sizes[i] = part[i];
      }
    }
  }
  shape_inference.set_output_sizes(std::move(sizes));
  return Done{};
}

Status infer_split(ShapeInference& shape_inference) {
  const Sizes& input_sizes = shape_inference.input_sizes(0);
  const Result<std::size_t> axis = resolve_axis(integer_attribute(shape_inference.node, "axis", 0), input_sizes.size());
  if (!axis) return axis.error();
  std::optional<Sizes> lengths = shape_inference.has_input(1) ? shape_inference.constant_input_integers(1)
                                                              : integers_attribute(shape_inference.node, "split");
  if (!lengths) return invalid_node("lengths computed from data");
  const auto parts = static_cast<std::int64_t>(shape_inference.outputs.size());
  if (lengths->empty()) {
    const std::int64_t part_length = (input_sizes[*axis] + parts - 1) / std::max<std::int64_t>(1, parts);
    for (std::int64_t i = 0; i < parts; ++i)
      lengths->push_back(std::max<std::int64_t>(0, std::min(part_length, input_sizes[*axis] - i * part_length)));
  }
  if (lengths->size() != shape_inference.outputs.size())
    return invalid_node("a different number of lengths than of parts");
  for (std::size_t position = 0; position < shape_inference.outputs.size(); ++position) {
    Sizes sizes = input_sizes;
    sizes[*axis] = (*lengths)[position];
    shape_inference.set_output_sizes(std::move(sizes), position);
  }
  return Done{};
}

std::int64_t slice_length(std::int64_t size, std::int64_t begin, std::int64_t end, std::int64_t step) {
  if (begin < 0) begin += size;
  if (end < 0) end += size;
  if (step > 0) {
    begin = std::clamp<std::int64_t>(begin, 0, size);
    end = std::clamp<std::int64_t>(end, 0, size);
    return end <= begin ? 0 : (end - begin + step - 1) / step;
  }
  begin = std::clamp<std::int64_t>(begin, -1, size - 1);
  end = std::clamp<std::int64_t>(end, -1, size - 1);
  return begin <= end ? 0 : (begin - end - step - 1) / -step;
}

Status infer_slice(ShapeInference& shape_inference) {
  Sizes sizes = shape_inference.input_sizes(0);
  const std::optional<Sizes> begins = shape_inference.constant_input_integers(1);
  const std::optional<Sizes> ends = shape_inference.constant_input_integers(2);
  if (!begins || !ends || begins->size() != ends->size()) return invalid_node("bounds computed from data");
  const std::optional<Sizes> axes = shape_inference.has_input(3) ? shape_inference.constant_input_integers(3) : Sizes();
  const std::optional<Sizes> steps =
      shape_inference.has_input(4) ? shape_inference.constant_input_integers(4) : Sizes();
  if (!axes || !steps) return invalid_node("axes computed from data");
  for (std::size_t i = 0; i < begins->size(); ++i) {
    const auto number = i < axes->size() ? (*axes)[i] : static_cast<std::int64_t>(i);
    const Result<std::size_t> axis = resolve_axis(number, sizes.size());
    const std::int64_t step = i < steps->size() ? (*steps)[i] : 1;
    if (!axis) return axis.error();
    if (step == 0) return invalid_node("a step of 0");
    sizes[*axis] = slice_length(sizes[*axis], (*begins)[i], (*ends)[i], step);
  }
  shape_inference.set_output_sizes(std::move(sizes));
  return Done{};
}

Status infer_pad(ShapeInference& shape_inference) {
  Sizes sizes = shape_inference.input_sizes(0);
  const std::optional<Sizes> pads = shape_inference.constant_input_integers(1);
  if (!pads) return invalid_node("paddings computed from data");
  std::vector<std::size_t> axes;
  if (shape_inference.has_input(3)) {
    const Result<std::vector<std::size_t>> padded_axes = read_axes(shape_inference, 3, sizes.size());
    if (!padded_axes) return padded_axes.error();
    axes = *padded_axes;
  } else {
    for (std::size_t i = 0; i < sizes.size(); ++i) axes.push_back(i);
  }
  if (pads->size() != 2 * axes.size()) return invalid_node("a different number of paddings than of sides");
  for (std::size_t i = 0; i < axes.size(); ++i) sizes[axes[i]] += (*pads)[i] + (*pads)[i + axes.size()];
  shape_inference.set_output_sizes(std::move(sizes));
  return Done{};
}

Status infer_depth_to_space(ShapeInference& shape_inference) {
  const Sizes& input_sizes = shape_inference.input_sizes(0);
  const std::int64_t block = integer_attribute(shape_inference.node, "blocksize", 1);
  if (input_sizes.size() != 4 || block < 1 || block > 4096 || input_sizes[1] % (block * block) != 0)
    return invalid_node("incompatible blocks");
  shape_inference.set_output_sizes(
      {input_sizes[0], input_sizes[1] / (block * block), input_sizes[2] * block, input_sizes[3] * block});
  return Done{};
}

Status infer_space_to_depth(ShapeInference& shape_inference) {
  const Sizes& input_sizes = shape_inference.input_sizes(0);
  const std::int64_t block = integer_attribute(shape_inference.node, "blocksize", 1);
  if (input_sizes.size() != 4 || block < 1 || block > 4096) return invalid_node("incompatible blocks");
  shape_inference.set_output_sizes({input_sizes[0], product_of_sizes({input_sizes[1], block, block}, 0, 3),
                                    input_sizes[2] / block, input_sizes[3] / block});
  return Done{};
}

constexpr std::array kLayoutNodeRules = {
    NodeRule{"Reshape", infer_reshape, 2},
    NodeRule{"Flatten", infer_flatten, 1},
    NodeRule{"Squeeze", infer_squeeze, 1},
    NodeRule{"Unsqueeze", infer_unsqueeze, 1},
    NodeRule{"Transpose", infer_transpose, 1},
    NodeRule{"Expand", infer_expand, 2},
    NodeRule{"Tile", infer_tile, 2},
    NodeRule{"Concat", infer_concat, 1},
    NodeRule{"Split", infer_split, 1},
    NodeRule{"Slice", infer_slice, 3},
    NodeRule{"Pad", infer_pad, 2},
    NodeRule{"DepthToSpace", infer_depth_to_space, 1},
    NodeRule{"SpaceToDepth", infer_space_to_depth, 1},
};

}  // namespace

const NodeRule* find_layout_node_rule(std::string_view type, std::string_view domain) {
  const auto matching_rule = std::find_if(kLayoutNodeRules.begin(), kLayoutNodeRules.end(), [=](const NodeRule& node) {
    return node.type == type && node.domain == domain;
  });
  return matching_rule == kLayoutNodeRules.end() ? nullptr : &*matching_rule;
}

}  // namespace joulemap::predict::onnx
