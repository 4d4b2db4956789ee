// SPDX-License-Identifier: Apache-2.0
//
// Rules for layers and functions that reshape, reorder or slice a tensor.
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

constexpr std::int64_t kMaxSplitParts = 1024;

// Resolves the -1 of a target shape for a tensor of `all` elements. If the target has no -1 and another number of
// elements, its first size is a batch stored in the model: replaces it by the batch of the call.
Shape resolve_inferred_dimension(LayerCall& call, const std::vector<std::int64_t>& target, std::int64_t all) {
  Shape out;
  std::int64_t known = 1;
  std::size_t open = target.size();
  for (std::size_t i = 0; i < target.size(); ++i) {
    const bool is_open = target[i] == -1;
    if (is_open && open != target.size()) call.set_failure("its shape has more than one unknown size");
    if (is_open) open = i;
    if (!is_open && target[i] < 1) call.set_failure(fmt::format("its shape has the size {}", target[i]));
    out.push_back(std::clamp<std::int64_t>(target[i], 1, kSaturatedElementCount));
    if (!is_open) known = saturating_product(known, out.back());
  }
  if (open == target.size() && known != all && !out.empty()) {
    open = 0;
    known /= out.front();
  }
  if (open < out.size() && known > 0 && all % known == 0) {
    out[open] = all / known;
  } else if (known != all) {
    call.set_failure(fmt::format("{} elements cannot be reshaped to {}", all, shape_text(out)),
                     "set the input size that the model was built for with --input");
  }
  return out;
}

std::vector<std::int64_t> integer_list_option(LayerCall& call, std::string_view key) {
  const DocumentValue* const value = call.find_option(key);
  std::vector<std::int64_t> found;
  if (value != nullptr && value->integer()) found.push_back(*value->integer());
  const DocumentValue::Array* list = value == nullptr ? nullptr : value->array();
  if (value != nullptr && value->find("items") != nullptr) list = value->find("items")->array();
  if (list != nullptr) {
    for (const DocumentValue& each : *list) found.push_back(each.integer().value_or(-1));
  }
  if (found.size() > kMaxTensorDimensions) call.set_failure(fmt::format("its {} has {} values", key, found.size()));
  found.resize(std::min(found.size(), kMaxTensorDimensions));
  return found;
}

std::vector<Shape> apply_reshape_layer(LayerCall& call) {
  call.require_dimension_count(1, kMaxTensorDimensions);
  const Shape in = call.input_shape();
  if (in.empty()) return {in};
  Shape out =
      resolve_inferred_dimension(call, integer_list_option(call, "target_shape"), element_count(in) / in.front());
  out.insert(out.begin(), in.front());
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
  const Shape in = call.input_shape();
  Shape out = {in.empty() ? 1 : in.front(), element_count(in, 1, in.size())};
  call.emit_view(out);
  return {std::move(out)};
}

// Emits a copy in another order of dimensions, because the next operation reads the data in that order.
std::vector<Shape> emit_transpose(LayerCall& call, const std::vector<std::int64_t>& order) {
  const Shape in = call.input_shape();
  std::vector<bool> seen(in.size(), false);
  Shape out;
  for (const std::int64_t each : order) {
    const std::size_t position = call.normalize_axis(each, in.size());
    if (position >= in.size() || seen[position]) break;
    seen[position] = true;
    out.push_back(in[position]);
  }
  if (out.size() != in.size()) {
    call.set_failure(fmt::format("its order does not name each of {} dimensions once", in.size()));
    return {in};
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
  const std::size_t one =
      call.normalize_axis(call.axes_option("axis1").empty() ? 0 : call.axes_option("axis1").front(), out.size());
  const std::size_t other =
      call.normalize_axis(call.axes_option("axis2").empty() ? 0 : call.axes_option("axis2").front(), out.size());
  if (call.failure()) return {out};
  std::swap(out[one], out[other]);
  call.emit_elementwise(Kind::reshape, "transpose", out);
  return {std::move(out)};
}

std::vector<Shape> apply_repeat_vector(LayerCall& call) {
  call.require_dimension_count(2, 2);
  const Shape in = call.input_shape();
  if (in.size() != 2) return {in};
  Shape out = {in[0], call.required_size_option("n"), in[1]};
  call.emit_elementwise(Kind::reshape, "gather", out);
  return {std::move(out)};
}

std::vector<Shape> apply_expand_dims(LayerCall& call) {
  Shape out = call.input_shape();
  std::vector<std::int64_t> axes = call.axes_option("axis");
  if (axes.empty()) axes = {-1};
  for (const std::int64_t each : axes) {
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(call.normalize_axis(each, out.size() + 1)), 1);
  }
  call.emit_view(out);
  return {std::move(out)};
}

std::vector<Shape> apply_squeeze(LayerCall& call) {
  const Shape in = call.input_shape();
  const std::vector<std::int64_t> axes = call.axes_option("axis");
  std::vector<bool> is_removed_axis(in.size(), false);
  for (const std::int64_t each : axes) {
    const std::size_t position = call.normalize_axis(each, in.size());
    if (position < is_removed_axis.size()) is_removed_axis[position] = in[position] == 1;
  }
  Shape out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!(axes.empty() ? in[i] == 1 : is_removed_axis[i])) out.push_back(in[i]);
  }
  call.emit_view(out);
  return {std::move(out)};
}

// Splits an axis into equal parts, at indices (keras.ops), or into parts of given sizes (TensorFlow).
std::vector<Shape> apply_split(LayerCall& call) {
  const Shape in = call.input_shape();
  const std::vector<std::int64_t> axes = call.axes_option("axis");
  const std::size_t axis = call.normalize_axis(axes.empty() ? 0 : axes.front(), in.size());
  const bool is_tensorflow = call.find_option("num_or_size_splits") != nullptr;
  const std::string_view key = is_tensorflow ? "num_or_size_splits" : "indices_or_sections";
  const DocumentValue* const how = call.find_option(key);
  if (call.failure() || how == nullptr || axis >= in.size()) {
    call.set_failure("the number of parts is missing");
    return {in};
  }
  std::vector<std::int64_t> sizes;
  if (const std::optional<std::int64_t> parts = how->integer()) {
    if (*parts < 1 || *parts > kMaxSplitParts || in[axis] % *parts != 0) {
      call.set_failure(fmt::format("{} cannot be split into {} equal parts", in[axis], *parts));
      return {in};
    }
    sizes.assign(static_cast<std::size_t>(*parts), in[axis] / *parts);
  } else if (is_tensorflow) {
    sizes = integer_list_option(call, key);
  } else {
    std::int64_t from = 0;
    for (const std::int64_t position : integer_list_option(call, key)) {
      const std::int64_t to = std::clamp<std::int64_t>(position, 0, in[axis]);
      sizes.push_back(to - from);  // ModelWalk::checked() rejects sizes below 1
      from = to;
    }
    sizes.push_back(in[axis] - from);
  }
  std::vector<Shape> parts;
  for (const std::int64_t size : sizes) {
    parts.push_back(in);
    parts.back()[axis] = size;
  }
  call.emit_view(in);
  return parts;
}

// Count of elements that a slice selects from `size`; empty if its step is invalid.
std::optional<std::int64_t> count_slice_elements(const DocumentValue& slice, std::int64_t size) {
  const DocumentValue* const inside = slice.find("config") != nullptr ? slice.find("config") : &slice;
  const std::int64_t step = inside->integer("step").value_or(1);
  if (step == 0 || step > kMaxElements || step < -kMaxElements) return std::nullopt;
  const auto position = [&](std::string_view key, std::int64_t default_value) {
    const std::optional<std::int64_t> found = inside->integer(key);
    if (!found) return default_value;
    return std::clamp<std::int64_t>(*found < 0 ? *found + size : *found, step < 0 ? -1 : 0, step < 0 ? size - 1 : size);
  };
  const std::int64_t start = position("start", step < 0 ? size - 1 : 0);
  const std::int64_t stop = position("stop", step < 0 ? -1 : size);
  const std::int64_t length = step < 0 ? start - stop : stop - start;
  const std::int64_t stride = step < 0 ? -step : step;
  return length <= 0 ? 0 : (length + stride - 1) / stride;
}

const DocumentValue* find_slice_spec(const LayerCall& call) {
  if (const DocumentValue* const spec = call.find_option("slice_spec")) return spec;
  const DocumentValue* const positional = call.call_json.positional;
  const DocumentValue::Array* const list = positional == nullptr ? nullptr : positional->array();
  return list == nullptr || list->size() < 2 ? nullptr : &(*list)[1];
}

std::vector<Shape> apply_get_item(LayerCall& call) {
  const Shape in = call.input_shape();
  const DocumentValue* const spec = find_slice_spec(call);
  const DocumentValue::Array single = spec == nullptr ? DocumentValue::Array{} : DocumentValue::Array{*spec};
  const DocumentValue::Array& list = spec != nullptr && spec->array() != nullptr ? *spec->array() : single;
  Shape out;
  std::size_t position = 0;
  for (const DocumentValue& each : list) {
    if (each.is_null()) {  // a new dimension
      out.push_back(1);
      continue;
    }
    const std::string word = each.text().value_or(each.text_or_empty("class_name"));
    if (word == "Ellipsis" || word == "__ellipsis__") {
      const std::size_t trailing_index_count = static_cast<std::size_t>(&list.back() - &each);
      while (position < in.size() && in.size() - position > trailing_index_count) out.push_back(in[position++]);
      continue;
    }
    if (position >= in.size()) {
      call.set_failure("it indexes more dimensions than the tensor has");
      return {in};
    }
    if (each.table() != nullptr) out.push_back(count_slice_elements(each, in[position]).value_or(in[position]));
    ++position;  // an integer index removes the dimension
  }
  while (position < in.size()) out.push_back(in[position++]);
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

constexpr LayerClassRule kLayerClassRules[] = {
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

std::span<const LayerClassRule> shape_rules() { return kLayerClassRules; }

}  // namespace joulemap::predict::keras
