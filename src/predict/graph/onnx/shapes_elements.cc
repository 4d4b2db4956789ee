// SPDX-License-Identifier: Apache-2.0
//
// Shape inference of element-wise nodes and reductions.
#include <algorithm>
#include <array>

#include "predict/graph/onnx/shapes.h"

namespace joulemap::predict::onnx {
namespace {

Status same(ShapeInference& at) {
  for (std::size_t position = 0; position < at.outputs.size(); ++position)
    at.set_output_sizes(at.input_sizes(0), position);
  return Done{};
}

Status same_boolean(ShapeInference& at) {
  at.outputs[0].type = DataType::boolean;
  return same(at);
}

Status cast(ShapeInference& at) {
  at.outputs[0].type = static_cast<DataType>(integer_attribute(at.node, "to", 0) & 0xffff);
  return same(at);
}

Status cast_like(ShapeInference& at) {
  at.outputs[0].type = at.inputs[1]->type;
  return same(at);
}

// Any number of inputs that broadcast.
Status broadcast_all(ShapeInference& at) {
  Sizes sizes = at.input_sizes(0);
  for (std::size_t position = 1; position < at.inputs.size(); ++position) {
    if (!at.has_input(position)) continue;
    Result<Sizes> both = broadcast(sizes, at.input_sizes(position));
    if (!both) return both.error();
    sizes = *std::move(both);
  }
  at.set_output_sizes(std::move(sizes));
  return Done{};
}

Status compare(ShapeInference& at) {
  at.outputs[0].type = DataType::boolean;
  return broadcast_all(at);
}

Status where(ShapeInference& at) {
  at.outputs[0].type = at.inputs[1]->type;
  return broadcast_all(at);
}

Status prelu(ShapeInference& at) { return same(at); }

Status dropout(ShapeInference& at) {
  if (at.outputs.size() > 1) at.outputs[1].type = DataType::boolean;
  return same(at);
}

// Norms that may also output mean and deviation, which networks do not use at inference.
Status norm(ShapeInference& at) {
  at.set_output_sizes(at.input_sizes(0));
  const Result<std::size_t> axis = axis_of(integer_attribute(at.node, "axis", -1), at.input_sizes(0).size());
  if (!axis) return axis.error();
  Sizes statistics = at.input_sizes(0);
  std::fill(statistics.begin() + static_cast<std::ptrdiff_t>(*axis), statistics.end(), 1);
  for (std::size_t position = 1; position < at.outputs.size(); ++position) at.set_output_sizes(statistics, position);
  return Done{};
}

Status batch_norm(ShapeInference& at) {
  at.set_output_sizes(at.input_sizes(0));
  for (std::size_t position = 1; position < at.outputs.size(); ++position) {
    if (at.has_input(position + 2)) at.set_output_sizes(at.input_sizes(position + 2), position);
  }
  return Done{};
}

// SkipLayerNormalization of onnxruntime: its inputs are x and a skip connection, its fourth output is their sum.
Status skip_norm(ShapeInference& at) {
  at.set_output_sizes(at.input_sizes(0));
  at.set_output_sizes(at.input_sizes(0), 3);
  return Done{};
}

Status reduce(ShapeInference& at) {
  const Sizes& from = at.input_sizes(0);
  Result<std::vector<std::size_t>> axes = axes_of(at, 1, from.size());
  if (!axes) return axes.error();
  if (axes->empty()) {
    if (integer_attribute(at.node, "noop_with_empty_axes", 0) != 0) return same(at);
    for (std::size_t i = 0; i < from.size(); ++i) axes->push_back(i);
  }
  const bool keep = integer_attribute(at.node, "keepdims", 1) != 0;
  Sizes left;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool gone = std::binary_search(axes->begin(), axes->end(), i);
    if (!gone) left.push_back(from[i]);
    if (gone && keep) left.push_back(1);
  }
  at.set_output_sizes(std::move(left));
  return Done{};
}

Status arg_reduce(ShapeInference& at) {
  at.outputs[0].type = DataType::int64;
  const Sizes& from = at.input_sizes(0);
  const Result<std::size_t> axis = axis_of(integer_attribute(at.node, "axis", 0), from.size());
  if (!axis) return axis.error();
  Sizes left = from;
  left[*axis] = 1;
  if (integer_attribute(at.node, "keepdims", 1) == 0) left.erase(left.begin() + static_cast<std::ptrdiff_t>(*axis));
  at.set_output_sizes(std::move(left));
  return Done{};
}

// Searched linearly for each node; similar nodes are listed together.
constexpr std::array kNodes = {
    NodeRule{"Relu", same, 1},
    NodeRule{"Sigmoid", same, 1},
    NodeRule{"Tanh", same, 1},
    NodeRule{"Gelu", same, 1},
    NodeRule{"Softmax", same, 1},
    NodeRule{"LogSoftmax", same, 1},
    NodeRule{"Hardmax", same, 1},
    NodeRule{"HardSigmoid", same, 1},
    NodeRule{"HardSwish", same, 1},
    NodeRule{"LeakyRelu", same, 1},
    NodeRule{"Elu", same, 1},
    NodeRule{"Celu", same, 1},
    NodeRule{"Selu", same, 1},
    NodeRule{"Mish", same, 1},
    NodeRule{"Swish", same, 1},
    NodeRule{"Softplus", same, 1},
    NodeRule{"Softsign", same, 1},
    NodeRule{"ThresholdedRelu", same, 1},
    NodeRule{"Shrink", same, 1},
    NodeRule{"Clip", same, 1},
    NodeRule{"PRelu", prelu, 2},
    NodeRule{"Abs", same, 1},
    NodeRule{"Neg", same, 1},
    NodeRule{"Sign", same, 1},
    NodeRule{"Ceil", same, 1},
    NodeRule{"Floor", same, 1},
    NodeRule{"Round", same, 1},
    NodeRule{"Sqrt", same, 1},
    NodeRule{"Reciprocal", same, 1},
    NodeRule{"Exp", same, 1},
    NodeRule{"Log", same, 1},
    NodeRule{"Erf", same, 1},
    NodeRule{"Sin", same, 1},
    NodeRule{"Cos", same, 1},
    NodeRule{"Tan", same, 1},
    NodeRule{"Asin", same, 1},
    NodeRule{"Acos", same, 1},
    NodeRule{"Atan", same, 1},
    NodeRule{"Sinh", same, 1},
    NodeRule{"Cosh", same, 1},
    NodeRule{"Asinh", same, 1},
    NodeRule{"Acosh", same, 1},
    NodeRule{"Atanh", same, 1},
    NodeRule{"BitwiseNot", same, 1},
    NodeRule{"Identity", same, 1},
    NodeRule{"Not", same_boolean, 1},
    NodeRule{"IsNaN", same_boolean, 1},
    NodeRule{"IsInf", same_boolean, 1},
    NodeRule{"Cast", cast, 1},
    NodeRule{"CastLike", cast_like, 2},
    NodeRule{"Dropout", dropout, 1},
    NodeRule{"CumSum", same, 2},
    NodeRule{"Trilu", same, 1},
    NodeRule{"LRN", same, 1},
    NodeRule{"RandomNormalLike", same, 1},
    NodeRule{"RandomUniformLike", same, 1},
    NodeRule{"Bernoulli", same, 1},
    NodeRule{"LpNormalization", same, 1},
    NodeRule{"MeanVarianceNormalization", same, 1},
    NodeRule{"InstanceNormalization", same, 3},
    NodeRule{"GroupNormalization", same, 3},
    NodeRule{"BatchNormalization", batch_norm, 5},
    NodeRule{"LayerNormalization", norm, 2},
    NodeRule{"RMSNormalization", norm, 2},
    NodeRule{"SimplifiedLayerNormalization", norm, 2},
    NodeRule{"Add", broadcast_all, 2},
    NodeRule{"Sub", broadcast_all, 2},
    NodeRule{"Mul", broadcast_all, 2},
    NodeRule{"Div", broadcast_all, 2},
    NodeRule{"Pow", broadcast_all, 2},
    NodeRule{"Mod", broadcast_all, 2},
    NodeRule{"Min", broadcast_all, 1},
    NodeRule{"Max", broadcast_all, 1},
    NodeRule{"Sum", broadcast_all, 1},
    NodeRule{"Mean", broadcast_all, 1},
    NodeRule{"BitShift", broadcast_all, 2},
    NodeRule{"BitwiseAnd", broadcast_all, 2},
    NodeRule{"BitwiseOr", broadcast_all, 2},
    NodeRule{"BitwiseXor", broadcast_all, 2},
    NodeRule{"And", compare, 2},
    NodeRule{"Or", compare, 2},
    NodeRule{"Xor", compare, 2},
    NodeRule{"Equal", compare, 2},
    NodeRule{"Greater", compare, 2},
    NodeRule{"GreaterOrEqual", compare, 2},
    NodeRule{"Less", compare, 2},
    NodeRule{"LessOrEqual", compare, 2},
    NodeRule{"Where", where, 3},
    NodeRule{"ReduceMean", reduce, 1},
    NodeRule{"ReduceSum", reduce, 1},
    NodeRule{"ReduceMax", reduce, 1},
    NodeRule{"ReduceMin", reduce, 1},
    NodeRule{"ReduceProd", reduce, 1},
    NodeRule{"ReduceL1", reduce, 1},
    NodeRule{"ReduceL2", reduce, 1},
    NodeRule{"ReduceLogSum", reduce, 1},
    NodeRule{"ReduceLogSumExp", reduce, 1},
    NodeRule{"ReduceSumSquare", reduce, 1},
    NodeRule{"ArgMax", arg_reduce, 1},
    NodeRule{"ArgMin", arg_reduce, 1},
    NodeRule{"Gelu", same, 1, "com.microsoft"},
    NodeRule{"FastGelu", same, 1, "com.microsoft"},
    NodeRule{"BiasGelu", same, 2, "com.microsoft"},
    NodeRule{"QuickGelu", same, 1, "com.microsoft"},
    NodeRule{"LayerNormalization", norm, 2, "com.microsoft"},
    NodeRule{"SimplifiedLayerNormalization", norm, 2, "com.microsoft"},
    NodeRule{"SkipLayerNormalization", skip_norm, 3, "com.microsoft"},
    NodeRule{"SkipSimplifiedLayerNormalization", skip_norm, 3, "com.microsoft"},
};

}  // namespace

const NodeRule* find_element_rule(std::string_view type, std::string_view domain) {
  const auto found = std::find_if(kNodes.begin(), kNodes.end(),
                                  [=](const NodeRule& node) { return node.type == type && node.domain == domain; });
  return found == kNodes.end() ? nullptr : &*found;
}

}  // namespace joulemap::predict::onnx
