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
Status resolve_reshape_target(const Sizes& from, bool allows_zero_size, Sizes& target) {
  std::int64_t known = 1;
  std::size_t rest = target.size();
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && !allows_zero_size) target[i] = i < from.size() ? from[i] : 0;
    if (target[i] == -1) {
      rest = i;
    } else {
      known = product_of_sizes({known, target[i]}, 0, 2);
    }
  }
  const std::int64_t all = onnx_element_count(from);
  if (rest < target.size()) target[rest] = known > 0 ? all / known : 0;
  if (onnx_element_count(target) != all) {
    return invalid_node(fmt::format("{} cannot be reshaped to {}", sizes_text(from), sizes_text(target)));
  }
  return Done{};
}

Status infer_reshape(ShapeInference& at) {
  const std::optional<Sizes> given = at.constant_input_integers(1);
  if (!given) return invalid_node("a target shape computed from data");
  Result<Sizes> target = rescale_target_to_batch(at, *given);
  if (!target) return target.error();
  const bool was_rescaled = *target != *given;
  Status status = resolve_reshape_target(at.input_sizes(0), integer_attribute(at.node, "allowzero", 0) != 0, *target);
  if (!status && was_rescaled) {
    *target = *given;
    status = resolve_reshape_target(at.input_sizes(0), integer_attribute(at.node, "allowzero", 0) != 0, *target);
  }
  if (!status) return status;
  at.set_output_sizes(*std::move(target));
  return Done{};
}

Status infer_flatten(ShapeInference& at) {
  const Sizes& from = at.input_sizes(0);
  const std::int64_t given = integer_attribute(at.node, "axis", 1);
  const auto rank = static_cast<std::int64_t>(from.size());
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) return invalid_node("an invalid axis");
  const auto split = static_cast<std::size_t>(axis);
  at.set_output_sizes({product_of_sizes(from, 0, split), product_of_sizes(from, split, from.size())});
  return Done{};
}

Status infer_squeeze(ShapeInference& at) {
  const Sizes& from = at.input_sizes(0);
  const Result<std::vector<std::size_t>> axes = read_axes(at, 1, from.size());
  if (!axes) return axes.error();
  const bool all = axes->empty() && !at.has_input(1);
  Sizes left;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool gone = all ? from[i] == 1 : std::binary_search(axes->begin(), axes->end(), i);
    if (gone && from[i] != 1) return invalid_node(fmt::format("dimension {} of {} is not 1", i, sizes_text(from)));
    if (!gone) left.push_back(from[i]);
  }
  at.set_output_sizes(std::move(left));
  return Done{};
}

Status infer_unsqueeze(ShapeInference& at) {
  const Sizes& from = at.input_sizes(0);
  const std::optional<Sizes> numbers =
      at.has_input(1) ? at.constant_input_integers(1) : integers_attribute(at.node, "axes");
  if (!numbers) return invalid_node("axes computed from data");
  const Result<std::vector<std::size_t>> axes = read_axes(at, 1, from.size() + numbers->size());
  if (!axes) return axes.error();
  Sizes more;
  std::size_t next = 0;
  for (std::size_t i = 0; i < from.size() + axes->size(); ++i) {
    const bool added = std::binary_search(axes->begin(), axes->end(), i);
    more.push_back(added ? 1 : from[next++]);
  }
  at.set_output_sizes(std::move(more));
  return Done{};
}

Status infer_transpose(ShapeInference& at) {
  const Sizes& from = at.input_sizes(0);
  const Sizes order = integers_attribute(at.node, "perm");
  Sizes sizes(from.rbegin(), from.rend());
  if (!order.empty()) {
    if (order.size() != from.size()) return invalid_node("a permutation with a different number of dimensions");
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Result<std::size_t> axis = resolve_axis(order[i], from.size());
      if (!axis) return axis.error();
      sizes[i] = from[*axis];
    }
    if (onnx_element_count(sizes) != onnx_element_count(from))
      return invalid_node("a permutation that omits dimensions");
  }
  at.set_output_sizes(std::move(sizes));
  return Done{};
}

Status infer_expand(ShapeInference& at) {
  const std::optional<Sizes> target = at.constant_input_integers(1);
  if (!target) return invalid_node("sizes computed from data");
  // A target that the file stores contains the file's batch, which is mostly 1 and broadcasts to any other.
  Result<Sizes> sizes = broadcast_sizes(at.input_sizes(0), *target);
  if (!sizes && at.values_at_file_batch != nullptr) {
    const Result<Sizes> rescaled_target = rescale_target_to_batch(at, *target);
    if (!rescaled_target) return rescaled_target.error();
    sizes = broadcast_sizes(at.input_sizes(0), *rescaled_target);
  }
  if (!sizes) return sizes.error();
  at.set_output_sizes(*std::move(sizes));
  return Done{};
}

Status infer_tile(ShapeInference& at) {
  const std::optional<Sizes> repeats = at.constant_input_integers(1);
  Sizes sizes = at.input_sizes(0);
  if (!repeats || repeats->size() != sizes.size()) return invalid_node("repeats computed from data");
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = product_of_sizes({sizes[i], (*repeats)[i]}, 0, 2);
  at.set_output_sizes(std::move(sizes));
  return Done{};
}

// Whether a dimension of an input differs between the file's batch and the requested one.
bool differs_from_file_batch(const ShapeInference& at, std::size_t position, std::size_t dimension) {
  if (position >= at.values_at_file_batch->inputs.size() || at.values_at_file_batch->inputs[position] == nullptr)
    return false;
  const std::optional<Sizes>& old = at.values_at_file_batch->inputs[position]->sizes;
  return old && dimension < old->size() && (*old)[dimension] != at.input_sizes(position)[dimension];
}

Status infer_concat(ShapeInference& at) {
  Sizes sizes = at.input_sizes(0);
  const Result<std::size_t> axis = resolve_axis(integer_attribute(at.node, "axis", 0), sizes.size());
  if (!axis) return axis.error();
  for (std::size_t position = 1; position < at.inputs.size(); ++position) {
    if (!at.has_input(position)) continue;
    const Sizes& part = at.input_sizes(position);
    if (part.size() != sizes.size()) return invalid_node("inputs with different numbers of dimensions");
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (i == *axis) {
        sizes[i] = std::min(kMaxElements + 1, sizes[i] + part[i]);
      } else if (sizes[i] != part[i]) {
        // A constant part, such as a class token, has the file's batch: it is repeated for the new batch.
        if (at.values_at_file_batch == nullptr)
          return invalid_node(fmt::format("{} cannot be concatenated with {}", sizes_text(sizes), sizes_text(part)));
        if (differs_from_file_batch(at, position, i)) sizes[i] = part[i];
      }
    }
  }
  at.set_output_sizes(std::move(sizes));
  return Done{};
}

Status infer_split(ShapeInference& at) {
  const Sizes& from = at.input_sizes(0);
  const Result<std::size_t> axis = resolve_axis(integer_attribute(at.node, "axis", 0), from.size());
  if (!axis) return axis.error();
  std::optional<Sizes> lengths = at.has_input(1) ? at.constant_input_integers(1) : integers_attribute(at.node, "split");
  if (!lengths) return invalid_node("lengths computed from data");
  const auto parts = static_cast<std::int64_t>(at.outputs.size());
  if (lengths->empty()) {
    const std::int64_t each = (from[*axis] + parts - 1) / std::max<std::int64_t>(1, parts);
    for (std::int64_t i = 0; i < parts; ++i)
      lengths->push_back(std::max<std::int64_t>(0, std::min(each, from[*axis] - i * each)));
  }
  if (lengths->size() != at.outputs.size()) return invalid_node("a different number of lengths than of parts");
  for (std::size_t position = 0; position < at.outputs.size(); ++position) {
    Sizes sizes = from;
    sizes[*axis] = (*lengths)[position];
    at.set_output_sizes(std::move(sizes), position);
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

Status infer_slice(ShapeInference& at) {
  Sizes sizes = at.input_sizes(0);
  const std::optional<Sizes> begins = at.constant_input_integers(1);
  const std::optional<Sizes> ends = at.constant_input_integers(2);
  if (!begins || !ends || begins->size() != ends->size()) return invalid_node("bounds computed from data");
  const std::optional<Sizes> axes = at.has_input(3) ? at.constant_input_integers(3) : Sizes();
  const std::optional<Sizes> steps = at.has_input(4) ? at.constant_input_integers(4) : Sizes();
  if (!axes || !steps) return invalid_node("axes computed from data");
  for (std::size_t i = 0; i < begins->size(); ++i) {
    const auto number = i < axes->size() ? (*axes)[i] : static_cast<std::int64_t>(i);
    const Result<std::size_t> axis = resolve_axis(number, sizes.size());
    const std::int64_t step = i < steps->size() ? (*steps)[i] : 1;
    if (!axis) return axis.error();
    if (step == 0) return invalid_node("a step of 0");
    sizes[*axis] = slice_length(sizes[*axis], (*begins)[i], (*ends)[i], step);
  }
  at.set_output_sizes(std::move(sizes));
  return Done{};
}

Status infer_pad(ShapeInference& at) {
  Sizes sizes = at.input_sizes(0);
  const std::optional<Sizes> pads = at.constant_input_integers(1);
  if (!pads) return invalid_node("paddings computed from data");
  std::vector<std::size_t> axes;
  if (at.has_input(3)) {
    const Result<std::vector<std::size_t>> given = read_axes(at, 3, sizes.size());
    if (!given) return given.error();
    axes = *given;
  } else {
    for (std::size_t i = 0; i < sizes.size(); ++i) axes.push_back(i);
  }
  if (pads->size() != 2 * axes.size()) return invalid_node("a different number of paddings than of sides");
  for (std::size_t i = 0; i < axes.size(); ++i) sizes[axes[i]] += (*pads)[i] + (*pads)[i + axes.size()];
  at.set_output_sizes(std::move(sizes));
  return Done{};
}

Status infer_depth_to_space(ShapeInference& at) {
  const Sizes& from = at.input_sizes(0);
  const std::int64_t block = integer_attribute(at.node, "blocksize", 1);
  if (from.size() != 4 || block < 1 || block > 4096 || from[1] % (block * block) != 0)
    return invalid_node("incompatible blocks");
  at.set_output_sizes({from[0], from[1] / (block * block), from[2] * block, from[3] * block});
  return Done{};
}

Status infer_space_to_depth(ShapeInference& at) {
  const Sizes& from = at.input_sizes(0);
  const std::int64_t block = integer_attribute(at.node, "blocksize", 1);
  if (from.size() != 4 || block < 1 || block > 4096) return invalid_node("incompatible blocks");
  at.set_output_sizes({from[0], product_of_sizes({from[1], block, block}, 0, 3), from[2] / block, from[3] / block});
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
  const auto found = std::find_if(kLayoutNodeRules.begin(), kLayoutNodeRules.end(),
                                  [=](const NodeRule& node) { return node.type == type && node.domain == domain; });
  return found == kLayoutNodeRules.end() ? nullptr : &*found;
}

}  // namespace joulemap::predict::onnx
