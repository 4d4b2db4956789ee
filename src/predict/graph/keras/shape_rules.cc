// SPDX-License-Identifier: Apache-2.0
//
// Rules for layers and functions that reshape, reorder or slice a tensor.
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

constexpr std::int64_t kMaxParts = 1024;

// Resolves the -1 of a target shape for a tensor of `all` elements. If the target has no -1 and another number of
// elements, its first size is a batch stored in the model: replaces it by the batch of the call.
Shape filled(LayerCall& call, const std::vector<std::int64_t>& target, std::int64_t all) {
  Shape out;
  std::int64_t known = 1;
  std::size_t open = target.size();
  for (std::size_t i = 0; i < target.size(); ++i) {
    const bool is_open = target[i] == -1;
    if (is_open && open != target.size()) call.fail("its shape has more than one unknown size");
    if (is_open) open = i;
    if (!is_open && target[i] < 1) call.fail(fmt::format("its shape has the size {}", target[i]));
    out.push_back(std::clamp<std::int64_t>(target[i], 1, kSaturatedCount));
    if (!is_open) known = saturating_product(known, out.back());
  }
  if (open == target.size() && known != all && !out.empty()) {
    open = 0;
    known /= out.front();
  }
  if (open < out.size() && known > 0 && all % known == 0) {
    out[open] = all / known;
  } else if (known != all) {
    call.fail(fmt::format("{} elements cannot be reshaped to {}", all, text(out)),
              "set the input size that the model was built for with --input");
  }
  return out;
}

std::vector<std::int64_t> numbers(LayerCall& call, std::string_view key) {
  const DocumentValue* const value = call.option(key);
  std::vector<std::int64_t> found;
  if (value != nullptr && value->integer()) found.push_back(*value->integer());
  const DocumentValue::Array* list = value == nullptr ? nullptr : value->array();
  if (value != nullptr && value->find("items") != nullptr) list = value->find("items")->array();
  if (list != nullptr) {
    for (const DocumentValue& each : *list) found.push_back(each.integer().value_or(-1));
  }
  if (found.size() > kMaxDimensions) call.fail(fmt::format("its {} has {} values", key, found.size()));
  found.resize(std::min(found.size(), kMaxDimensions));
  return found;
}

std::vector<Shape> reshape_layer(LayerCall& call) {
  call.need_dimensions(1, kMaxDimensions);
  const Shape in = call.shape();
  if (in.empty()) return {in};
  Shape out = filled(call, numbers(call, "target_shape"), elements(in) / in.front());
  out.insert(out.begin(), in.front());
  call.view(out);
  return {std::move(out)};
}

std::vector<Shape> reshape_function(LayerCall& call) {
  const std::string_view key = call.option("newshape") != nullptr ? "newshape" : "shape";
  Shape out = filled(call, numbers(call, key), elements(call.shape()));
  call.view(out);
  return {std::move(out)};
}

std::vector<Shape> flatten(LayerCall& call) {
  const Shape in = call.shape();
  Shape out = {in.empty() ? 1 : in.front(), elements(in, 1, in.size())};
  call.view(out);
  return {std::move(out)};
}

// Emits a copy in another order of dimensions, because the next operation reads the data in that order.
std::vector<Shape> ordered(LayerCall& call, const std::vector<std::int64_t>& order) {
  const Shape in = call.shape();
  std::vector<bool> seen(in.size(), false);
  Shape out;
  for (const std::int64_t each : order) {
    const std::size_t position = call.axis(each, in.size());
    if (position >= in.size() || seen[position]) break;
    seen[position] = true;
    out.push_back(in[position]);
  }
  if (out.size() != in.size()) {
    call.fail(fmt::format("its order does not name each of {} dimensions once", in.size()));
    return {in};
  }
  call.elementwise(Kind::reshape, "transpose", out);
  return {std::move(out)};
}

std::vector<Shape> permute(LayerCall& call) {
  std::vector<std::int64_t> order = call.axes("dims");
  order.insert(order.begin(), 0);
  return ordered(call, order);
}

std::vector<Shape> transpose(LayerCall& call) {
  std::vector<std::int64_t> order = call.option("axes") != nullptr ? call.axes("axes") : call.axes("perm");
  if (order.empty()) {
    for (std::size_t i = call.shape().size(); i > 0; --i) order.push_back(static_cast<std::int64_t>(i - 1));
  }
  return ordered(call, order);
}

std::vector<Shape> swap_axes(LayerCall& call) {
  Shape out = call.shape();
  const std::size_t one = call.axis(call.axes("axis1").empty() ? 0 : call.axes("axis1").front(), out.size());
  const std::size_t other = call.axis(call.axes("axis2").empty() ? 0 : call.axes("axis2").front(), out.size());
  if (call.failure()) return {out};
  std::swap(out[one], out[other]);
  call.elementwise(Kind::reshape, "transpose", out);
  return {std::move(out)};
}

std::vector<Shape> repeat_vector(LayerCall& call) {
  call.need_dimensions(2, 2);
  const Shape in = call.shape();
  if (in.size() != 2) return {in};
  Shape out = {in[0], call.size("n"), in[1]};
  call.elementwise(Kind::reshape, "gather", out);
  return {std::move(out)};
}

std::vector<Shape> expand_dims(LayerCall& call) {
  Shape out = call.shape();
  std::vector<std::int64_t> axes = call.axes("axis");
  if (axes.empty()) axes = {-1};
  for (const std::int64_t each : axes) {
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(call.axis(each, out.size() + 1)), 1);
  }
  call.view(out);
  return {std::move(out)};
}

std::vector<Shape> squeeze(LayerCall& call) {
  const Shape in = call.shape();
  const std::vector<std::int64_t> axes = call.axes("axis");
  std::vector<bool> goes(in.size(), false);
  for (const std::int64_t each : axes) {
    const std::size_t position = call.axis(each, in.size());
    if (position < goes.size()) goes[position] = in[position] == 1;
  }
  Shape out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!(axes.empty() ? in[i] == 1 : goes[i])) out.push_back(in[i]);
  }
  call.view(out);
  return {std::move(out)};
}

// Splits an axis into equal parts, at indices (keras.ops), or into parts of given sizes (TensorFlow).
std::vector<Shape> split(LayerCall& call) {
  const Shape in = call.shape();
  const std::vector<std::int64_t> axes = call.axes("axis");
  const std::size_t axis = call.axis(axes.empty() ? 0 : axes.front(), in.size());
  const bool is_tensorflow = call.option("num_or_size_splits") != nullptr;
  const std::string_view key = is_tensorflow ? "num_or_size_splits" : "indices_or_sections";
  const DocumentValue* const how = call.option(key);
  if (call.failure() || how == nullptr || axis >= in.size()) {
    call.fail("the number of parts is missing");
    return {in};
  }
  std::vector<std::int64_t> sizes;
  if (const std::optional<std::int64_t> parts = how->integer()) {
    if (*parts < 1 || *parts > kMaxParts || in[axis] % *parts != 0) {
      call.fail(fmt::format("{} cannot be split into {} equal parts", in[axis], *parts));
      return {in};
    }
    sizes.assign(static_cast<std::size_t>(*parts), in[axis] / *parts);
  } else if (is_tensorflow) {
    sizes = numbers(call, key);
  } else {
    std::int64_t from = 0;
    for (const std::int64_t position : numbers(call, key)) {
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
  call.view(in);
  return parts;
}

// Count of elements that a slice selects from `size`; empty if its step is invalid.
std::optional<std::int64_t> sliced(const DocumentValue& slice, std::int64_t size) {
  const DocumentValue* const inside = slice.find("config") != nullptr ? slice.find("config") : &slice;
  const std::int64_t step = inside->integer("step").value_or(1);
  if (step == 0 || step > kMaxElements || step < -kMaxElements) return std::nullopt;
  const auto position = [&](std::string_view key, std::int64_t otherwise) {
    const std::optional<std::int64_t> found = inside->integer(key);
    if (!found) return otherwise;
    return std::clamp<std::int64_t>(*found < 0 ? *found + size : *found, step < 0 ? -1 : 0, step < 0 ? size - 1 : size);
  };
  const std::int64_t start = position("start", step < 0 ? size - 1 : 0);
  const std::int64_t stop = position("stop", step < 0 ? -1 : size);
  const std::int64_t length = step < 0 ? start - stop : stop - start;
  const std::int64_t stride = step < 0 ? -step : step;
  return length <= 0 ? 0 : (length + stride - 1) / stride;
}

const DocumentValue* slices_of(const LayerCall& call) {
  if (const DocumentValue* const spec = call.option("slice_spec")) return spec;
  const DocumentValue* const positional = call.written.positional;
  const DocumentValue::Array* const list = positional == nullptr ? nullptr : positional->array();
  return list == nullptr || list->size() < 2 ? nullptr : &(*list)[1];
}

std::vector<Shape> get_item(LayerCall& call) {
  const Shape in = call.shape();
  const DocumentValue* const spec = slices_of(call);
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
      const std::size_t behind = static_cast<std::size_t>(&list.back() - &each);
      while (position < in.size() && in.size() - position > behind) out.push_back(in[position++]);
      continue;
    }
    if (position >= in.size()) {
      call.fail("it indexes more dimensions than the tensor has");
      return {in};
    }
    if (each.table() != nullptr) out.push_back(sliced(each, in[position]).value_or(in[position]));
    ++position;  // an integer index removes the dimension
  }
  while (position < in.size()) out.push_back(in[position++]);
  call.view(out);
  return {std::move(out)};
}

std::vector<Shape> same_but_moved(LayerCall& call) {
  const Shape shape = call.shape();
  call.elementwise(Kind::reshape, "gather", shape);
  return {shape};
}

std::vector<Shape> broadcast_to(LayerCall& call) {
  Shape out = numbers(call, "shape");
  if (std::any_of(out.begin(), out.end(), [](std::int64_t size) { return size < 1; }))
    call.fail("its shape is unknown");
  call.view(out);
  return {std::move(out)};
}

constexpr NamedRule kRules[] = {
    {"Reshape", reshape_layer},
    {"Flatten", flatten},
    {"Permute", permute},
    {"RepeatVector", repeat_vector},
    {"reshape", reshape_function},
    {"transpose", transpose},
    {"swapaxes", swap_axes},
    {"expanddims", expand_dims},
    {"expanddimsv2", expand_dims},
    {"squeeze", squeeze},
    {"split", split},
    {"getitem", get_item},
    {"roll", same_but_moved},
    {"flip", same_but_moved},
    {"reverse", same_but_moved},
    {"broadcastto", broadcast_to},
    {"flatten", flatten},
};

}  // namespace

std::span<const NamedRule> shape_rules() { return kRules; }

}  // namespace joulemap::predict::keras
