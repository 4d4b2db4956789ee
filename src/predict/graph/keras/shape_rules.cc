// SPDX-License-Identifier: Apache-2.0
//
// Rules for layers and functions that reshape, reorder or slice a tensor.
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

constexpr std::int64_t kMaxSplitParts = 1024;

// Resolves the -1 of a target shape for a tensor of `total_element_count` elements. If the target has no -1 and
// another number of elements, its first size is a batch stored in the model: replaces it by the batch of the call.
Shape resolve_inferred_dimension(LayerCall& call, const std::vector<std::int64_t>& target,
                                 std::int64_t total_element_count) {
  Shape out;
  std::int64_t known_element_count = 1;
  std::size_t inferred_axis = target.size();
  for (std::size_t i = 0; i < target.size(); ++i) {
    const bool is_open = target[i] == -1;
    if (is_open && inferred_axis != target.size()) call.set_failure("its shape has more than one unknown size");
    if (is_open) inferred_axis = i;
    if (!is_open && target[i] < 1) call.set_failure(fmt::format("its shape has the size {}", target[i]));
    out.push_back(std::clamp<std::int64_t>(target[i], 1, kSaturatedElementCount));
    if (!is_open) known_element_count = saturating_product(known_element_count, out.back());
  }
  if (inferred_axis == target.size() && known_element_count != total_element_count && !out.empty()) {
    inferred_axis = 0;
    known_element_count /= out.front();
  }
  if (inferred_axis < out.size() && known_element_count > 0 && total_element_count % known_element_count == 0) {
    out[inferred_axis] = total_element_count / known_element_count;
  } else if (known_element_count != total_element_count) {
    call.set_failure(fmt::format("{} elements cannot be reshaped to {}", total_element_count, shape_text(out)),
                     "set the input size that the model was built for with --input");
  }
  return out;
}

std::vector<std::int64_t> integer_list_option(LayerCall& call, std::string_view key) {
  const DocumentValue* const value = call.find_option(key);
  std::vector<std::int64_t> integer_values;
  if (value != nullptr && value->integer()) integer_values.push_back(*value->integer());
  const DocumentValue::Array* integers_json = value == nullptr ? nullptr : value->array();
  if (value != nullptr && value->find("items") != nullptr) integers_json = value->find("items")->array();
  if (integers_json != nullptr) {
    for (const DocumentValue& integer_json : *integers_json)
      integer_values.push_back(integer_json.integer().value_or(-1));
  }
  if (integer_values.size() > kMaxTensorDimensions)
    call.set_failure(fmt::format("its {} has {} values", key, integer_values.size()));
  integer_values.resize(std::min(integer_values.size(), kMaxTensorDimensions));
  return integer_values;
}

std::vector<Shape> apply_reshape_layer(LayerCall& call) {
  call.require_dimension_count(1, kMaxTensorDimensions);
  const Shape input_shape = call.input_shape();
  if (input_shape.empty()) return {input_shape};
  Shape out = resolve_inferred_dimension(call, integer_list_option(call, "target_shape"),
                                         element_count(input_shape) / input_shape.front());
  out.insert(out.begin(), input_shape.front());
  call.emit_view(out);
  return {std::move(out)};
}

std::vector<Shape> apply_reshape_function(LayerCall& call) {
  const std::string_view key = call.find_option("newshape") != nullptr ? "newshape" : "shape";
  Shape out = resolve_inferred_dimension(call, integer_list_option(call, key), element_count(call.input_shape()));
  call.emit_view(out);
  return {std::move(out)};
}

std::vector<Shape> apply_flatten(LayerCall& call) {
  const Shape input_shape = call.input_shape();
  Shape out = {input_shape.empty() ? 1 : input_shape.front(), element_count(input_shape, 1, input_shape.size())};
  call.emit_view(out);
  return {std::move(out)};
}

// Emits a copy in another order of dimensions, because the next operation reads the data in that order.
std::vector<Shape> emit_transpose(LayerCall& call, const std::vector<std::int64_t>& order) {
  const Shape input_shape = call.input_shape();
  std::vector<bool> is_named_axis(input_shape.size(), false);
  Shape out;
  for (const std::int64_t axis : order) {
    const std::size_t position = call.normalize_axis(axis, input_shape.size());
    if (position >= input_shape.size() || is_named_axis[position]) break;
    is_named_axis[position] = true;
    out.push_back(input_shape[position]);
  }
  if (out.size() != input_shape.size()) {
    call.set_failure(fmt::format("its order does not name each of {} dimensions once", input_shape.size()));
    return {input_shape};
  }
  call.emit_elementwise(Kind::reshape, "transpose", out);
  return {std::move(out)};
}

std::vector<Shape> apply_permute(LayerCall& call) {
  std::vector<std::int64_t> order = call.axes_option("dims");
  order.insert(order.begin(), 0);
  return emit_transpose(call, order);
}

std::vector<Shape> apply_transpose(LayerCall& call) {
  std::vector<std::int64_t> order =
      call.find_option("axes") != nullptr ? call.axes_option("axes") : call.axes_option("perm");
  if (order.empty()) {
    for (std::size_t i = call.input_shape().size(); i > 0; --i) order.push_back(static_cast<std::int64_t>(i - 1));
  }
  return emit_transpose(call, order);
}

std::vector<Shape> apply_swap_axes(LayerCall& call) {
  Shape out = call.input_shape();
  const std::size_t first_axis =
      call.normalize_axis(call.axes_option("axis1").empty() ? 0 : call.axes_option("axis1").front(), out.size());
  const std::size_t second_axis =
      call.normalize_axis(call.axes_option("axis2").empty() ? 0 : call.axes_option("axis2").front(), out.size());
  if (call.failure()) return {out};
  std::swap(out[first_axis], out[second_axis]);
  call.emit_elementwise(Kind::reshape, "transpose", out);
  return {std::move(out)};
}

std::vector<Shape> apply_repeat_vector(LayerCall& call) {
  call.require_dimension_count(2, 2);
  const Shape input_shape = call.input_shape();
  if (input_shape.size() != 2) return {input_shape};
  Shape out = {input_shape[0], call.required_size_option("n"), input_shape[1]};
  call.emit_elementwise(Kind::reshape, "gather", out);
  return {std::move(out)};
}

std::vector<Shape> apply_expand_dims(LayerCall& call) {
  Shape out = call.input_shape();
  std::vector<std::int64_t> axes = call.axes_option("axis");
  if (axes.empty()) axes = {-1};
  for (const std::int64_t axis : axes) {
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(call.normalize_axis(axis, out.size() + 1)), 1);
  }
  call.emit_view(out);
  return {std::move(out)};
}

std::vector<Shape> apply_squeeze(LayerCall& call) {
  const Shape input_shape = call.input_shape();
  const std::vector<std::int64_t> axes = call.axes_option("axis");
  std::vector<bool> is_removed_axis(input_shape.size(), false);
  for (const std::int64_t axis : axes) {
    const std::size_t position = call.normalize_axis(axis, input_shape.size());
    if (position < is_removed_axis.size()) is_removed_axis[position] = input_shape[position] == 1;
  }
  Shape out;
  for (std::size_t i = 0; i < input_shape.size(); ++i) {
    if (!(axes.empty() ? input_shape[i] == 1 : is_removed_axis[i])) out.push_back(input_shape[i]);
  }
  call.emit_view(out);
  return {std::move(out)};
}

// Splits an axis into equal parts, at indices (keras.ops), or into parts of given sizes (TensorFlow).
std::vector<Shape> apply_split(LayerCall& call) {
  const Shape input_shape = call.input_shape();
  const std::vector<std::int64_t> axes = call.axes_option("axis");
  const std::size_t axis = call.normalize_axis(axes.empty() ? 0 : axes.front(), input_shape.size());
  const bool is_tensorflow = call.find_option("num_or_size_splits") != nullptr;
  const std::string_view key = is_tensorflow ? "num_or_size_splits" : "indices_or_sections";
  const DocumentValue* const split_option = call.find_option(key);
  if (call.failure() || split_option == nullptr || axis >= input_shape.size()) {
    call.set_failure("the number of parts is missing");
    return {input_shape};
  }
  std::vector<std::int64_t> sizes;
  if (const std::optional<std::int64_t> parts = split_option->integer()) {
    if (*parts < 1 || *parts > kMaxSplitParts || input_shape[axis] % *parts != 0) {
      call.set_failure(fmt::format("{} cannot be split into {} equal parts", input_shape[axis], *parts));
      return {input_shape};
    }
    sizes.assign(static_cast<std::size_t>(*parts), input_shape[axis] / *parts);
  } else if (is_tensorflow) {
    sizes = integer_list_option(call, key);
  } else {
    std::int64_t part_begin = 0;
    for (const std::int64_t position : integer_list_option(call, key)) {
      const std::int64_t part_end = std::clamp<std::int64_t>(position, 0, input_shape[axis]);
      sizes.push_back(part_end - part_begin);  // ModelWalk::checked() rejects sizes below 1
      part_begin = part_end;
    }
    sizes.push_back(input_shape[axis] - part_begin);
  }
  std::vector<Shape> parts;
  for (const std::int64_t size : sizes) {
    parts.push_back(input_shape);
    parts.back()[axis] = size;
  }
  call.emit_view(input_shape);
  return parts;
}

// Count of elements that a slice selects from `size`; empty if its step is invalid.
std::optional<std::int64_t> count_slice_elements(const DocumentValue& slice, std::int64_t size) {
  const DocumentValue* const slice_config = slice.find("config") != nullptr ? slice.find("config") : &slice;
  const std::int64_t step = slice_config->integer("step").value_or(1);
  if (step == 0 || step > kMaxElements || step < -kMaxElements) return std::nullopt;
  const auto position = [&](std::string_view key, std::int64_t default_value) {
    const std::optional<std::int64_t> slice_bound = slice_config->integer(key);
    if (!slice_bound) return default_value;
    return std::clamp<std::int64_t>(*slice_bound < 0 ? *slice_bound + size : *slice_bound, step < 0 ? -1 : 0,
                                    step < 0 ? size - 1 : size);
  };
  const std::int64_t start = position("start", step < 0 ? size - 1 : 0);
  const std::int64_t stop = position("stop", step < 0 ? -1 : size);
  const std::int64_t length = step < 0 ? start - stop : stop - start;
  const std::int64_t stride = step < 0 ? -step : step;
  return length <= 0 ? 0 : (length + stride - 1) / stride;
}

const DocumentValue* find_slice_spec(const LayerCall& call) {
  if (const DocumentValue* const slice_spec = call.find_option("slice_spec")) return slice_spec;
  const DocumentValue* const positional = call.call_json.positional;
  const DocumentValue::Array* const call_arguments = positional == nullptr ? nullptr : positional->array();
  return call_arguments == nullptr || call_arguments->size() < 2 ? nullptr : &(*call_arguments)[1];
}

std::vector<Shape> apply_get_item(LayerCall& call) {
  const Shape input_shape = call.input_shape();
  const DocumentValue* const slice_spec = find_slice_spec(call);
  const DocumentValue::Array single_index_array =
      slice_spec == nullptr ? DocumentValue::Array{} : DocumentValue::Array{*slice_spec};
  const DocumentValue::Array& indices_json =
      slice_spec != nullptr && slice_spec->array() != nullptr ? *slice_spec->array() : single_index_array;
  Shape out;
  std::size_t position = 0;
  for (const DocumentValue& index_json : indices_json) {
    if (index_json.is_null()) {  // a new dimension
      out.push_back(1);
      continue;
    }
    const std::string word = index_json.text().value_or(index_json.text_or_empty("class_name"));
    if (word == "Ellipsis" || word == "__ellipsis__") {
      const std::size_t trailing_index_count = static_cast<std::size_t>(&indices_json.back() - &index_json);
      while (position < input_shape.size() && input_shape.size() - position > trailing_index_count)
        out.push_back(input_shape[position++]);
      continue;
    }
    if (position >= input_shape.size()) {
      call.set_failure("it indexes more dimensions than the tensor has");
      return {input_shape};
    }
    if (index_json.table() != nullptr)
      out.push_back(count_slice_elements(index_json, input_shape[position]).value_or(input_shape[position]));
    ++position;  // an integer index removes the dimension
  }
  while (position < input_shape.size()) out.push_back(input_shape[position++]);
  call.emit_view(out);
  return {std::move(out)};
}

std::vector<Shape> apply_flip_or_roll(LayerCall& call) {
  const Shape shape = call.input_shape();
  call.emit_elementwise(Kind::reshape, "gather", shape);
  return {shape};
}

std::vector<Shape> apply_broadcast_to(LayerCall& call) {
  Shape out = integer_list_option(call, "shape");
  if (std::any_of(out.begin(), out.end(), [](std::int64_t size) { return size < 1; }))
    call.set_failure("its shape is unknown");
  call.emit_view(out);
  return {std::move(out)};
}

constexpr LayerClassRule kShapeLayerRules[] = {
    {"Reshape", apply_reshape_layer},
    {"Flatten", apply_flatten},
    {"Permute", apply_permute},
    {"RepeatVector", apply_repeat_vector},
    {"reshape", apply_reshape_function},
    {"transpose", apply_transpose},
    {"swapaxes", apply_swap_axes},
    {"expanddims", apply_expand_dims},
    {"expanddimsv2", apply_expand_dims},
    {"squeeze", apply_squeeze},
    {"split", apply_split},
    {"getitem", apply_get_item},
    {"roll", apply_flip_or_roll},
    {"flip", apply_flip_or_roll},
    {"reverse", apply_flip_or_roll},
    {"broadcastto", apply_broadcast_to},
    {"flatten", apply_flatten},
};

}  // namespace

std::span<const LayerClassRule> shape_rules() { return kShapeLayerRules; }

}  // namespace joulemap::predict::keras
