// SPDX-License-Identifier: Apache-2.0
//
// Shape inference of element-wise nodes and reductions.
#include <algorithm>
#include <array>

#include "predict/graph/onnx/shapes.h"

namespace joulemap::predict::onnx {
namespace {

Status same(Inference& at) {
  for (std::size_t place = 0; place < at.outputs.size(); ++place) at.give(at.sizes(0), place);
  return Done{};
}

Status same_boolean(Inference& at) {
  at.outputs[0].type = Type::boolean;
  return same(at);
}

Status cast(Inference& at) {
  at.outputs[0].type = static_cast<Type>(integer_of(at.node, "to", 0) & 0xffff);
  return same(at);
}

Status cast_like(Inference& at) {
  at.outputs[0].type = at.inputs[1]->type;
  return same(at);
}

// Any count of inputs that broadcast.
Status together(Inference& at) {
  Sizes sizes = at.sizes(0);
  for (std::size_t place = 1; place < at.inputs.size(); ++place) {
    if (!at.has(place)) continue;
    Result<Sizes> both = broadcast(sizes, at.sizes(place));
    if (!both) return both.error();
    sizes = *std::move(both);
  }
  at.give(std::move(sizes));
  return Done{};
}

Status compare(Inference& at) {
  at.outputs[0].type = Type::boolean;
  return together(at);
}

Status where(Inference& at) {
  at.outputs[0].type = at.inputs[1]->type;
  return together(at);
}

Status prelu(Inference& at) { return same(at); }

Status dropout(Inference& at) {
  if (at.outputs.size() > 1) at.outputs[1].type = Type::boolean;
  return same(at);
}

// Norms that may also output mean and deviation, which networks do not use at inference.
Status norm(Inference& at) {
  at.give(at.sizes(0));
  const Result<std::size_t> axis = axis_of(integer_of(at.node, "axis", -1), at.sizes(0).size());
  if (!axis) return axis.error();
  Sizes statistics = at.sizes(0);
  std::fill(statistics.begin() + static_cast<std::ptrdiff_t>(*axis), statistics.end(), 1);
  for (std::size_t place = 1; place < at.outputs.size(); ++place) at.give(statistics, place);
  return Done{};
}

Status batch_norm(Inference& at) {
  at.give(at.sizes(0));
  for (std::size_t place = 1; place < at.outputs.size(); ++place) {
    if (at.has(place + 2)) at.give(at.sizes(place + 2), place);
  }
  return Done{};
}

// SkipLayerNormalization of onnxruntime: x, skip, and a fourth output with their sum.
Status skip_norm(Inference& at) {
  at.give(at.sizes(0));
  at.give(at.sizes(0), 3);
  return Done{};
}

Status reduce(Inference& at) {
  const Sizes& from = at.sizes(0);
  Result<std::vector<std::size_t>> axes = axes_of(at, 1, from.size());
  if (!axes) return axes.error();
  if (axes->empty()) {
    if (integer_of(at.node, "noop_with_empty_axes", 0) != 0) return same(at);
    for (std::size_t i = 0; i < from.size(); ++i) axes->push_back(i);
  }
  const bool keep = integer_of(at.node, "keepdims", 1) != 0;
  Sizes left;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool gone = std::binary_search(axes->begin(), axes->end(), i);
    if (!gone) left.push_back(from[i]);
    if (gone && keep) left.push_back(1);
  }
  at.give(std::move(left));
  return Done{};
}

Status arg_reduce(Inference& at) {
  at.outputs[0].type = Type::int64;
  const Sizes& from = at.sizes(0);
  const Result<std::size_t> axis = axis_of(integer_of(at.node, "axis", 0), from.size());
  if (!axis) return axis.error();
  Sizes left = from;
  left[*axis] = 1;
  if (integer_of(at.node, "keepdims", 1) == 0) left.erase(left.begin() + static_cast<std::ptrdiff_t>(*axis));
  at.give(std::move(left));
  return Done{};
}

// In the order in which people look for them; a linear search for each node.
constexpr std::array kNodes = {
    KnownNode{"Relu", same, 1},
    KnownNode{"Sigmoid", same, 1},
    KnownNode{"Tanh", same, 1},
    KnownNode{"Gelu", same, 1},
    KnownNode{"Softmax", same, 1},
    KnownNode{"LogSoftmax", same, 1},
    KnownNode{"Hardmax", same, 1},
    KnownNode{"HardSigmoid", same, 1},
    KnownNode{"HardSwish", same, 1},
    KnownNode{"LeakyRelu", same, 1},
    KnownNode{"Elu", same, 1},
    KnownNode{"Celu", same, 1},
    KnownNode{"Selu", same, 1},
    KnownNode{"Mish", same, 1},
    KnownNode{"Swish", same, 1},
    KnownNode{"Softplus", same, 1},
    KnownNode{"Softsign", same, 1},
    KnownNode{"ThresholdedRelu", same, 1},
    KnownNode{"Shrink", same, 1},
    KnownNode{"Clip", same, 1},
    KnownNode{"PRelu", prelu, 2},
    KnownNode{"Abs", same, 1},
    KnownNode{"Neg", same, 1},
    KnownNode{"Sign", same, 1},
    KnownNode{"Ceil", same, 1},
    KnownNode{"Floor", same, 1},
    KnownNode{"Round", same, 1},
    KnownNode{"Sqrt", same, 1},
    KnownNode{"Reciprocal", same, 1},
    KnownNode{"Exp", same, 1},
    KnownNode{"Log", same, 1},
    KnownNode{"Erf", same, 1},
    KnownNode{"Sin", same, 1},
    KnownNode{"Cos", same, 1},
    KnownNode{"Tan", same, 1},
    KnownNode{"Asin", same, 1},
    KnownNode{"Acos", same, 1},
    KnownNode{"Atan", same, 1},
    KnownNode{"Sinh", same, 1},
    KnownNode{"Cosh", same, 1},
    KnownNode{"Asinh", same, 1},
    KnownNode{"Acosh", same, 1},
    KnownNode{"Atanh", same, 1},
    KnownNode{"BitwiseNot", same, 1},
    KnownNode{"Identity", same, 1},
    KnownNode{"Not", same_boolean, 1},
    KnownNode{"IsNaN", same_boolean, 1},
    KnownNode{"IsInf", same_boolean, 1},
    KnownNode{"Cast", cast, 1},
    KnownNode{"CastLike", cast_like, 2},
    KnownNode{"Dropout", dropout, 1},
    KnownNode{"CumSum", same, 2},
    KnownNode{"Trilu", same, 1},
    KnownNode{"LRN", same, 1},
    KnownNode{"RandomNormalLike", same, 1},
    KnownNode{"RandomUniformLike", same, 1},
    KnownNode{"Bernoulli", same, 1},
    KnownNode{"LpNormalization", same, 1},
    KnownNode{"MeanVarianceNormalization", same, 1},
    KnownNode{"InstanceNormalization", same, 3},
    KnownNode{"GroupNormalization", same, 3},
    KnownNode{"BatchNormalization", batch_norm, 5},
    KnownNode{"LayerNormalization", norm, 2},
    KnownNode{"RMSNormalization", norm, 2},
    KnownNode{"SimplifiedLayerNormalization", norm, 2},
    KnownNode{"Add", together, 2},
    KnownNode{"Sub", together, 2},
    KnownNode{"Mul", together, 2},
    KnownNode{"Div", together, 2},
    KnownNode{"Pow", together, 2},
    KnownNode{"Mod", together, 2},
    KnownNode{"Min", together, 1},
    KnownNode{"Max", together, 1},
    KnownNode{"Sum", together, 1},
    KnownNode{"Mean", together, 1},
    KnownNode{"BitShift", together, 2},
    KnownNode{"BitwiseAnd", together, 2},
    KnownNode{"BitwiseOr", together, 2},
    KnownNode{"BitwiseXor", together, 2},
    KnownNode{"And", compare, 2},
    KnownNode{"Or", compare, 2},
    KnownNode{"Xor", compare, 2},
    KnownNode{"Equal", compare, 2},
    KnownNode{"Greater", compare, 2},
    KnownNode{"GreaterOrEqual", compare, 2},
    KnownNode{"Less", compare, 2},
    KnownNode{"LessOrEqual", compare, 2},
    KnownNode{"Where", where, 3},
    KnownNode{"ReduceMean", reduce, 1},
    KnownNode{"ReduceSum", reduce, 1},
    KnownNode{"ReduceMax", reduce, 1},
    KnownNode{"ReduceMin", reduce, 1},
    KnownNode{"ReduceProd", reduce, 1},
    KnownNode{"ReduceL1", reduce, 1},
    KnownNode{"ReduceL2", reduce, 1},
    KnownNode{"ReduceLogSum", reduce, 1},
    KnownNode{"ReduceLogSumExp", reduce, 1},
    KnownNode{"ReduceSumSquare", reduce, 1},
    KnownNode{"ArgMax", arg_reduce, 1},
    KnownNode{"ArgMin", arg_reduce, 1},
    KnownNode{"Gelu", same, 1, "com.microsoft"},
    KnownNode{"FastGelu", same, 1, "com.microsoft"},
    KnownNode{"BiasGelu", same, 2, "com.microsoft"},
    KnownNode{"QuickGelu", same, 1, "com.microsoft"},
    KnownNode{"LayerNormalization", norm, 2, "com.microsoft"},
    KnownNode{"SimplifiedLayerNormalization", norm, 2, "com.microsoft"},
    KnownNode{"SkipLayerNormalization", skip_norm, 3, "com.microsoft"},
    KnownNode{"SkipSimplifiedLayerNormalization", skip_norm, 3, "com.microsoft"},
};

}  // namespace

const KnownNode* find_element_node(std::string_view type, std::string_view domain) {
  const auto found = std::find_if(kNodes.begin(), kNodes.end(),
                                  [=](const KnownNode& node) { return node.type == type && node.domain == domain; });
  return found == kNodes.end() ? nullptr : &*found;
}

}  // namespace joulemap::predict::onnx
