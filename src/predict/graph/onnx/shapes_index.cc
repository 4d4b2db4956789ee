// SPDX-License-Identifier: Apache-2.0
//
// Shape inference of nodes that read and write by index, create tensors, or resize images.
#include <algorithm>
#include <array>
#include <cmath>

#include "predict/graph/onnx/shapes.h"

namespace joulemap::predict::onnx {
namespace {

void append_size_range(Sizes& sizes, const Sizes& source_sizes, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < std::min(end, source_sizes.size()); ++i) sizes.push_back(source_sizes[i]);
}

Status infer_gather(ShapeInference& shape_inference) {
  const Sizes& data = shape_inference.input_sizes(0);
  const Result<std::size_t> axis = resolve_axis(integer_attribute(shape_inference.node, "axis", 0), data.size());
  if (!axis) return axis.error();
  Sizes sizes;
  append_size_range(sizes, data, 0, *axis);
  append_size_range(sizes, shape_inference.input_sizes(1), 0, shape_inference.input_sizes(1).size());
  append_size_range(sizes, data, *axis + 1, data.size());
  shape_inference.set_output_sizes(std::move(sizes));
  return Done{};
}

Status infer_gather_elements(ShapeInference& shape_inference) {
  shape_inference.set_output_sizes(shape_inference.input_sizes(1));
  return Done{};
}

Status infer_gather_nd(ShapeInference& shape_inference) {
  const Sizes& data = shape_inference.input_sizes(0);
  const Sizes& indices = shape_inference.input_sizes(1);
  const auto batch_dimension_count =
      static_cast<std::size_t>(std::max<std::int64_t>(0, integer_attribute(shape_inference.node, "batch_dims", 0)));
  if (indices.empty() || indices.back() < 0) return invalid_node("indices without dimensions");
  if (indices.back() > static_cast<std::int64_t>(data.size()))
    return invalid_node("indices with more dimensions than the tensor");
  Sizes sizes;
  append_size_range(sizes, indices, 0, indices.size() - 1);
  append_size_range(sizes, data, batch_dimension_count + static_cast<std::size_t>(indices.back()), data.size());
  shape_inference.set_output_sizes(std::move(sizes));
  return Done{};
}

Status infer_like_first_input(ShapeInference& shape_inference) {
  shape_inference.set_output_sizes(shape_inference.input_sizes(0));
  return Done{};
}

Status infer_shape_node(ShapeInference& shape_inference) {
  const Sizes& input_sizes = shape_inference.input_sizes(0);
  const auto rank = static_cast<std::int64_t>(input_sizes.size());
  std::int64_t begin = integer_attribute(shape_inference.node, "start", 0);
  std::int64_t end = integer_attribute(shape_inference.node, "end", rank);
  begin = std::clamp<std::int64_t>(begin < 0 ? begin + rank : begin, 0, rank);
  end = std::clamp<std::int64_t>(end < 0 ? end + rank : end, begin, rank);
  Value& output = shape_inference.outputs[0];
  output.type = DataType::int64;
  output.constant_values.emplace(input_sizes.begin() + begin, input_sizes.begin() + end);
  shape_inference.set_output_sizes({end - begin});
  return Done{};
}

Status infer_size_node(ShapeInference& shape_inference) {
  Value& output = shape_inference.outputs[0];
  output.type = DataType::int64;
  output.constant_values = std::vector<double>{static_cast<double>(onnx_element_count(shape_inference.input_sizes(0)))};
  shape_inference.set_output_sizes({});
  return Done{};
}

// A tensor of one number with given sizes. Stores its numbers if it is small, because shapes may depend on them.
Status infer_constant_of_shape(ShapeInference& shape_inference) {
  const std::optional<Sizes> sizes = shape_inference.constant_input_integers(0);
  if (!sizes) return invalid_node("sizes computed from data");
  const Attribute* const value = find_attribute(shape_inference.node, "value");
  double number = 0;
  shape_inference.outputs[0].type = DataType::float32;
  if (value != nullptr && !value->tensor.empty()) {
    shape_inference.outputs[0].type = value->tensor[0].type;
    if (value->tensor[0].stored_values && !value->tensor[0].stored_values->empty())
      number = (*value->tensor[0].stored_values)[0];
  }
  const std::int64_t elements = onnx_element_count(*sizes);
  if (elements <= static_cast<std::int64_t>(kMaxStoredConstantValues)) {
    shape_inference.outputs[0].constant_values.emplace(static_cast<std::size_t>(elements), number);
  }
  shape_inference.set_output_sizes(*sizes);
  return Done{};
}

Status infer_range(ShapeInference& shape_inference) {
  for (std::size_t position = 0; position < 3; ++position) {
    if (!shape_inference.inputs[position]->constant_values ||
        shape_inference.inputs[position]->constant_values->size() != 1)
      return invalid_node("bounds computed from data");
  }
  const double begin = (*shape_inference.inputs[0]->constant_values)[0];
  const double end = (*shape_inference.inputs[1]->constant_values)[0];
  const double step = (*shape_inference.inputs[2]->constant_values)[0];
  const double count = step == 0 ? 0 : std::ceil((end - begin) / step);
  if (!(count <= static_cast<double>(kMaxElements))) return invalid_node("a range without an end");
  const auto length = static_cast<std::int64_t>(std::max(0.0, count));
  if (length <= static_cast<std::int64_t>(kMaxStoredConstantValues)) {
    shape_inference.outputs[0].constant_values.emplace();
    for (std::int64_t i = 0; i < length; ++i)
      shape_inference.outputs[0].constant_values->push_back(begin + static_cast<double>(i) * step);
  }
  shape_inference.set_output_sizes({length});
  return Done{};
}

Status infer_one_hot(ShapeInference& shape_inference) {
  const std::optional<Sizes> depth = shape_inference.constant_input_integers(1);
  if (!depth || depth->size() != 1) return invalid_node("a depth computed from data");
  Sizes sizes = shape_inference.input_sizes(0);
  const Result<std::size_t> axis = resolve_axis(integer_attribute(shape_inference.node, "axis", -1), sizes.size() + 1);
  if (!axis) return axis.error();
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(*axis), (*depth)[0]);
  shape_inference.outputs[0].type = shape_inference.inputs[2]->type;
  shape_inference.set_output_sizes(std::move(sizes));
  return Done{};
}

Status infer_top_k(ShapeInference& shape_inference) {
  const std::optional<Sizes> k = shape_inference.constant_input_integers(1);
  Sizes sizes = shape_inference.input_sizes(0);
  const Result<std::size_t> axis = resolve_axis(integer_attribute(shape_inference.node, "axis", -1), sizes.size());
  if (!k || k->size() != 1) return invalid_node("a value of k computed from data");
  if (!axis) return axis.error();
  sizes[*axis] = (*k)[0];
  shape_inference.set_output_sizes(sizes);
  shape_inference.set_output_sizes(sizes, 1);
  if (shape_inference.outputs.size() > 1) shape_inference.outputs[1].type = DataType::int64;
  return Done{};
}

// Assumes that all elements are nonzero, the upper bound: the actual number depends on data.
Status infer_non_zero(ShapeInference& shape_inference) {
  shape_inference.outputs[0].type = DataType::int64;
  shape_inference.set_output_sizes({static_cast<std::int64_t>(shape_inference.input_sizes(0).size()),
                                    onnx_element_count(shape_inference.input_sizes(0))});
  return Done{};
}

Status infer_random_tensor(ShapeInference& shape_inference) {
  shape_inference.outputs[0].type = static_cast<DataType>(integer_attribute(shape_inference.node, "dtype", 1) & 0xffff);
  shape_inference.set_output_sizes(integers_attribute(shape_inference.node, "shape"));
  return Done{};
}

std::vector<std::size_t> read_resized_axes(const ShapeInference& shape_inference, std::size_t rank) {
  std::vector<std::size_t> axes;
  for (const std::int64_t axis_number : integers_attribute(shape_inference.node, "axes")) {
    if (const Result<std::size_t> axis = resolve_axis(axis_number, rank)) axes.push_back(*axis);
  }
  for (std::size_t i = 0; axes.empty() && i < rank; ++i) axes.push_back(i);
  return axes;
}

Status infer_resize(ShapeInference& shape_inference) {
  Sizes sizes = shape_inference.input_sizes(0);
  const std::vector<std::size_t> axes = read_resized_axes(shape_inference, sizes.size());
  const bool has_sizes_input = shape_inference.has_input(3) && onnx_element_count(shape_inference.input_sizes(3)) > 0;
  const std::size_t position = has_sizes_input ? 3 : 2;
  if (!shape_inference.has_input(position) || !shape_inference.inputs[position]->constant_values)
    return invalid_node("a scale computed from data");
  const std::vector<double>& resize_values = *shape_inference.inputs[position]->constant_values;
  if (resize_values.size() != axes.size()) return invalid_node("a different number of scales than of dimensions");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const double size =
        has_sizes_input ? resize_values[i] : std::floor(static_cast<double>(sizes[axes[i]]) * resize_values[i]);
    if (!(size >= 0 && size <= static_cast<double>(kMaxElements))) return invalid_node("an impossible size");
    // Stored sizes contain the file's batch, which a resize never changes.
    if (axes[i] == 0 && shape_inference.values_at_file_batch != nullptr) continue;
    sizes[axes[i]] = static_cast<std::int64_t>(size);
  }
  shape_inference.set_output_sizes(std::move(sizes));
  return Done{};
}

Status infer_grid_sample(ShapeInference& shape_inference) {
  const Sizes& image = shape_inference.input_sizes(0);
  const Sizes& grid = shape_inference.input_sizes(1);
  if (image.size() < 3 || grid.size() != image.size()) return invalid_node("a grid with incompatible dimensions");
  Sizes sizes = {image[0], image[1]};
  append_size_range(sizes, grid, 1, grid.size() - 1);
  shape_inference.set_output_sizes(std::move(sizes));
  return Done{};
}

constexpr std::array kIndexingNodeRules = {
    NodeRule{"Gather", infer_gather, 2},
    NodeRule{"GatherElements", infer_gather_elements, 2},
    NodeRule{"GatherND", infer_gather_nd, 2},
    NodeRule{"ScatterElements", infer_like_first_input, 3},
    NodeRule{"ScatterND", infer_like_first_input, 3},
    NodeRule{"TensorScatter", infer_like_first_input, 2},
    NodeRule{"ReverseSequence", infer_like_first_input, 2},
    NodeRule{"Shape", infer_shape_node, 1},
    NodeRule{"Size", infer_size_node, 1},
    NodeRule{"ConstantOfShape", infer_constant_of_shape, 1},
    NodeRule{"Range", infer_range, 3},
    NodeRule{"EyeLike", infer_like_first_input, 1},
    NodeRule{"OneHot", infer_one_hot, 3},
    NodeRule{"TopK", infer_top_k, 2},
    NodeRule{"NonZero", infer_non_zero, 1},
    NodeRule{"RandomNormal", infer_random_tensor, 0},
    NodeRule{"RandomUniform", infer_random_tensor, 0},
    NodeRule{"Resize", infer_resize, 1},
    NodeRule{"GridSample", infer_grid_sample, 2},
};

}  // namespace

const NodeRule* find_indexing_node_rule(std::string_view type, std::string_view domain) {
  const auto matching_rule =
      std::find_if(kIndexingNodeRules.begin(), kIndexingNodeRules.end(),
                   [=](const NodeRule& node) { return node.type == type && node.domain == domain; });
  return matching_rule == kIndexingNodeRules.end() ? nullptr : &*matching_rule;
}

}  // namespace joulemap::predict::onnx
