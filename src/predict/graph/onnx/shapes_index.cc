// SPDX-License-Identifier: Apache-2.0
//
// Shape inference of nodes that read and write by index, create tensors, or resize images.
#include <algorithm>
#include <array>
#include <cmath>

#include "predict/graph/onnx/shapes.h"

namespace joulemap::predict::onnx {
namespace {

void append(Sizes& sizes, const Sizes& from, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < std::min(end, from.size()); ++i) sizes.push_back(from[i]);
}

Status gather(Inference& at) {
  const Sizes& data = at.sizes(0);
  const Result<std::size_t> axis = axis_of(integer_of(at.node, "axis", 0), data.size());
  if (!axis) return axis.error();
  Sizes sizes;
  append(sizes, data, 0, *axis);
  append(sizes, at.sizes(1), 0, at.sizes(1).size());
  append(sizes, data, *axis + 1, data.size());
  at.give(std::move(sizes));
  return Done{};
}

Status gather_elements(Inference& at) {
  at.give(at.sizes(1));
  return Done{};
}

Status gather_nd(Inference& at) {
  const Sizes& data = at.sizes(0);
  const Sizes& indices = at.sizes(1);
  const auto shared = static_cast<std::size_t>(std::max<std::int64_t>(0, integer_of(at.node, "batch_dims", 0)));
  if (indices.empty() || indices.back() < 0) return misfit("indices without dimensions");
  if (indices.back() > static_cast<std::int64_t>(data.size()))
    return misfit("indices of more dimensions than there are");
  Sizes sizes;
  append(sizes, indices, 0, indices.size() - 1);
  append(sizes, data, shared + static_cast<std::size_t>(indices.back()), data.size());
  at.give(std::move(sizes));
  return Done{};
}

Status as_first(Inference& at) {
  at.give(at.sizes(0));
  return Done{};
}

Status shape(Inference& at) {
  const Sizes& from = at.sizes(0);
  const auto rank = static_cast<std::int64_t>(from.size());
  std::int64_t begin = integer_of(at.node, "start", 0);
  std::int64_t end = integer_of(at.node, "end", rank);
  begin = std::clamp<std::int64_t>(begin < 0 ? begin + rank : begin, 0, rank);
  end = std::clamp<std::int64_t>(end < 0 ? end + rank : end, begin, rank);
  Value& output = at.outputs[0];
  output.type = Type::int64;
  output.numbers.emplace(from.begin() + begin, from.begin() + end);
  at.give({end - begin});
  return Done{};
}

Status size(Inference& at) {
  Value& output = at.outputs[0];
  output.type = Type::int64;
  output.numbers = std::vector<double>{static_cast<double>(elements_of(at.sizes(0)))};
  at.give({});
  return Done{};
}

// A constant with given sizes; keeps its numbers if small, because shapes may depend on them.
Status constant_of_shape(Inference& at) {
  const std::optional<Sizes> sizes = at.integers(0);
  if (!sizes) return misfit("sizes that are computed from data");
  const Attribute* const value = find_attribute(at.node, "value");
  double number = 0;
  at.outputs[0].type = Type::float32;
  if (value != nullptr && !value->tensor.empty()) {
    at.outputs[0].type = value->tensor[0].type;
    if (value->tensor[0].numbers && !value->tensor[0].numbers->empty()) number = (*value->tensor[0].numbers)[0];
  }
  const std::int64_t elements = elements_of(*sizes);
  if (elements <= static_cast<std::int64_t>(kMostNumbers)) {
    at.outputs[0].numbers.emplace(static_cast<std::size_t>(elements), number);
  }
  at.give(*sizes);
  return Done{};
}

Status range(Inference& at) {
  for (std::size_t place = 0; place < 3; ++place) {
    if (!at.inputs[place]->numbers || at.inputs[place]->numbers->size() != 1)
      return misfit("bounds that are computed from data");
  }
  const double begin = (*at.inputs[0]->numbers)[0];
  const double end = (*at.inputs[1]->numbers)[0];
  const double step = (*at.inputs[2]->numbers)[0];
  const double count = step == 0 ? 0 : std::ceil((end - begin) / step);
  if (!(count <= static_cast<double>(kMostElements))) return misfit("a range of no end");
  const auto length = static_cast<std::int64_t>(std::max(0.0, count));
  if (length <= static_cast<std::int64_t>(kMostNumbers)) {
    at.outputs[0].numbers.emplace();
    for (std::int64_t i = 0; i < length; ++i) at.outputs[0].numbers->push_back(begin + static_cast<double>(i) * step);
  }
  at.give({length});
  return Done{};
}

Status one_hot(Inference& at) {
  const std::optional<Sizes> depth = at.integers(1);
  if (!depth || depth->size() != 1) return misfit("a depth that is computed from data");
  Sizes sizes = at.sizes(0);
  const Result<std::size_t> axis = axis_of(integer_of(at.node, "axis", -1), sizes.size() + 1);
  if (!axis) return axis.error();
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(*axis), (*depth)[0]);
  at.outputs[0].type = at.inputs[2]->type;
  at.give(std::move(sizes));
  return Done{};
}

Status top_k(Inference& at) {
  const std::optional<Sizes> k = at.integers(1);
  Sizes sizes = at.sizes(0);
  const Result<std::size_t> axis = axis_of(integer_of(at.node, "axis", -1), sizes.size());
  if (!k || k->size() != 1) return misfit("a number of largest ones that is computed from data");
  if (!axis) return axis.error();
  sizes[*axis] = (*k)[0];
  at.give(sizes);
  at.give(sizes, 1);
  if (at.outputs.size() > 1) at.outputs[1].type = Type::int64;
  return Done{};
}

// The upper bound: the actual count depends on data.
Status non_zero(Inference& at) {
  at.outputs[0].type = Type::int64;
  at.give({static_cast<std::int64_t>(at.sizes(0).size()), elements_of(at.sizes(0))});
  return Done{};
}

Status random_tensor(Inference& at) {
  at.outputs[0].type = static_cast<Type>(integer_of(at.node, "dtype", 1) & 0xffff);
  at.give(integers_of(at.node, "shape"));
  return Done{};
}

std::vector<std::size_t> resized_axes(const Inference& at, std::size_t rank) {
  std::vector<std::size_t> axes;
  for (const std::int64_t given : integers_of(at.node, "axes")) {
    if (const Result<std::size_t> axis = axis_of(given, rank)) axes.push_back(*axis);
  }
  for (std::size_t i = 0; axes.empty() && i < rank; ++i) axes.push_back(i);
  return axes;
}

Status resize(Inference& at) {
  Sizes sizes = at.sizes(0);
  const std::vector<std::size_t> axes = resized_axes(at, sizes.size());
  const bool by_sizes = at.has(3) && elements_of(at.sizes(3)) > 0;
  const std::size_t place = by_sizes ? 3 : 2;
  if (!at.has(place) || !at.inputs[place]->numbers) return misfit("a scale that is computed from data");
  const std::vector<double>& given = *at.inputs[place]->numbers;
  if (given.size() != axes.size()) return misfit("another number of scales than of dimensions");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const double size = by_sizes ? given[i] : std::floor(static_cast<double>(sizes[axes[i]]) * given[i]);
    if (!(size >= 0 && size <= static_cast<double>(kMostElements))) return misfit("a size that cannot be");
    // Stored sizes contain the file's batch, which a resize never changes.
    if (axes[i] == 0 && at.before != nullptr) continue;
    sizes[axes[i]] = static_cast<std::int64_t>(size);
  }
  at.give(std::move(sizes));
  return Done{};
}

Status grid_sample(Inference& at) {
  const Sizes& image = at.sizes(0);
  const Sizes& grid = at.sizes(1);
  if (image.size() < 3 || grid.size() != image.size()) return misfit("a grid of other dimensions");
  Sizes sizes = {image[0], image[1]};
  append(sizes, grid, 1, grid.size() - 1);
  at.give(std::move(sizes));
  return Done{};
}

constexpr std::array kNodes = {
    KnownNode{"Gather", gather, 2},
    KnownNode{"GatherElements", gather_elements, 2},
    KnownNode{"GatherND", gather_nd, 2},
    KnownNode{"ScatterElements", as_first, 3},
    KnownNode{"ScatterND", as_first, 3},
    KnownNode{"TensorScatter", as_first, 2},
    KnownNode{"ReverseSequence", as_first, 2},
    KnownNode{"Shape", shape, 1},
    KnownNode{"Size", size, 1},
    KnownNode{"ConstantOfShape", constant_of_shape, 1},
    KnownNode{"Range", range, 3},
    KnownNode{"EyeLike", as_first, 1},
    KnownNode{"OneHot", one_hot, 3},
    KnownNode{"TopK", top_k, 2},
    KnownNode{"NonZero", non_zero, 1},
    KnownNode{"RandomNormal", random_tensor, 0},
    KnownNode{"RandomUniform", random_tensor, 0},
    KnownNode{"Resize", resize, 1},
    KnownNode{"GridSample", grid_sample, 2},
};

}  // namespace

const KnownNode* find_index_node(std::string_view type, std::string_view domain) {
  const auto found = std::find_if(kNodes.begin(), kNodes.end(),
                                  [=](const KnownNode& node) { return node.type == type && node.domain == domain; });
  return found == kNodes.end() ? nullptr : &*found;
}

}  // namespace joulemap::predict::onnx
