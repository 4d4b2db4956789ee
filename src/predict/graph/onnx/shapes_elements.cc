// SPDX-License-Identifier: Apache-2.0
//
// Shape inference of element-wise nodes and reductions.
#include <algorithm>
#include <array>

#include "predict/graph/onnx/shapes.h"

namespace joulemap::predict::onnx {
namespace {

Status infer_same_shape(ShapeInference& shape_inference) {
  for (std::size_t position = 0; position < shape_inference.outputs.size(); ++position)
    shape_inference.set_output_sizes(shape_inference.input_sizes(0), position);
  return Done{};
}

Status infer_boolean_shape(ShapeInference& shape_inference) {
  shape_inference.outputs[0].type = DataType::boolean;
  return infer_same_shape(shape_inference);
}

Status infer_cast(ShapeInference& shape_inference) {
  shape_inference.outputs[0].type = static_cast<DataType>(integer_attribute(shape_inference.node, "to", 0) & 0xffff);
  return infer_same_shape(shape_inference);
}

Status infer_cast_like(ShapeInference& shape_inference) {
  shape_inference.outputs[0].type = shape_inference.inputs[1]->type;
  return infer_same_shape(shape_inference);
}

// Any number of inputs that broadcast.
Status infer_broadcast(ShapeInference& shape_inference) {
  Sizes sizes = shape_inference.input_sizes(0);
  for (std::size_t position = 1; position < shape_inference.inputs.size(); ++position) {
    if (!shape_inference.has_input(position)) continue;
    Result<Sizes> combined_sizes = broadcast_sizes(sizes, shape_inference.input_sizes(position));
    if (!combined_sizes) return combined_sizes.error();
    sizes = *std::move(combined_sizes);
  }
  shape_inference.set_output_sizes(std::move(sizes));
  return Done{};
}

Status infer_comparison(ShapeInference& shape_inference) {
  shape_inference.outputs[0].type = DataType::boolean;
  return infer_broadcast(shape_inference);
}

Status infer_where(ShapeInference& shape_inference) {
  shape_inference.outputs[0].type = shape_inference.inputs[1]->type;
  return infer_broadcast(shape_inference);
}

Status infer_prelu(ShapeInference& shape_inference) { return infer_same_shape(shape_inference); }

Status infer_dropout(ShapeInference& shape_inference) {
  if (shape_inference.outputs.size() > 1) shape_inference.outputs[1].type = DataType::boolean;
  return infer_same_shape(shape_inference);
}

// Norms that may also output mean and deviation, which networks do not use at inference.
Status infer_norm(ShapeInference& shape_inference) {
  shape_inference.set_output_sizes(shape_inference.input_sizes(0));
  const Result<std::size_t> axis =
      resolve_axis(integer_attribute(shape_inference.node, "axis", -1), shape_inference.input_sizes(0).size());
  if (!axis) return axis.error();
  Sizes statistics = shape_inference.input_sizes(0);
  std::fill(statistics.begin() + static_cast<std::ptrdiff_t>(*axis), statistics.end(), 1);
  for (std::size_t position = 1; position < shape_inference.outputs.size(); ++position)
    shape_inference.set_output_sizes(statistics, position);
  return Done{};
}

Status infer_batch_norm(ShapeInference& shape_inference) {
  shape_inference.set_output_sizes(shape_inference.input_sizes(0));
  for (std::size_t position = 1; position < shape_inference.outputs.size(); ++position) {
    if (shape_inference.has_input(position + 2))
      shape_inference.set_output_sizes(shape_inference.input_sizes(position + 2), position);
  }
  return Done{};
}

// SkipLayerNormalization of onnxruntime: its inputs are x and a skip connection, its fourth output is their sum.
Status infer_skip_layer_norm(ShapeInference& shape_inference) {
  shape_inference.set_output_sizes(shape_inference.input_sizes(0));
  shape_inference.set_output_sizes(shape_inference.input_sizes(0), 3);
  return Done{};
}

Status infer_reduction(ShapeInference& shape_inference) {
  const Sizes& input_sizes = shape_inference.input_sizes(0);
  Result<std::vector<std::size_t>> axes = read_axes(shape_inference, 1, input_sizes.size());
  if (!axes) return axes.error();
  if (axes->empty()) {
    if (integer_attribute(shape_inference.node, "noop_with_empty_axes", 0) != 0)
      return infer_same_shape(shape_inference);
    for (std::size_t i = 0; i < input_sizes.size(); ++i) axes->push_back(i);
  }
  const bool keeps_dimensions = integer_attribute(shape_inference.node, "keepdims", 1) != 0;
  Sizes output_sizes;
  for (std::size_t i = 0; i < input_sizes.size(); ++i) {
    const bool is_removed_axis = std::binary_search(axes->begin(), axes->end(), i);
    if (!is_removed_axis) output_sizes.push_back(input_sizes[i]);
    if (is_removed_axis && keeps_dimensions) output_sizes.push_back(1);
  }
  shape_inference.set_output_sizes(std::move(output_sizes));
  return Done{};
}

Status infer_arg_reduction(ShapeInference& shape_inference) {
  shape_inference.outputs[0].type = DataType::int64;
  const Sizes& input_sizes = shape_inference.input_sizes(0);
  const Result<std::size_t> axis = resolve_axis(integer_attribute(shape_inference.node, "axis", 0), input_sizes.size());
  if (!axis) return axis.error();
  Sizes output_sizes = input_sizes;
  output_sizes[*axis] = 1;
  if (integer_attribute(shape_inference.node, "keepdims", 1) == 0)
    output_sizes.erase(output_sizes.begin() + static_cast<std::ptrdiff_t>(*axis));
  shape_inference.set_output_sizes(std::move(output_sizes));
  return Done{};
}

// Searched linearly for each node; similar nodes are listed together.
constexpr std::array kElementwiseNodeRules = {
    NodeRule{"Relu", infer_same_shape, 1},
    NodeRule{"Sigmoid", infer_same_shape, 1},
    NodeRule{"Tanh", infer_same_shape, 1},
    NodeRule{"Gelu", infer_same_shape, 1},
    NodeRule{"Softmax", infer_same_shape, 1},
    NodeRule{"LogSoftmax", infer_same_shape, 1},
    NodeRule{"Hardmax", infer_same_shape, 1},
    NodeRule{"HardSigmoid", infer_same_shape, 1},
    NodeRule{"HardSwish", infer_same_shape, 1},
    NodeRule{"LeakyRelu", infer_same_shape, 1},
    NodeRule{"Elu", infer_same_shape, 1},
    NodeRule{"Celu", infer_same_shape, 1},
    NodeRule{"Selu", infer_same_shape, 1},
    NodeRule{"Mish", infer_same_shape, 1},
    NodeRule{"Swish", infer_same_shape, 1},
    NodeRule{"Softplus", infer_same_shape, 1},
    NodeRule{"Softsign", infer_same_shape, 1},
    NodeRule{"ThresholdedRelu", infer_same_shape, 1},
    NodeRule{"Shrink", infer_same_shape, 1},
    NodeRule{"Clip", infer_same_shape, 1},
    NodeRule{"PRelu", infer_prelu, 2},
    NodeRule{"Abs", infer_same_shape, 1},
    NodeRule{"Neg", infer_same_shape, 1},
    NodeRule{"Sign", infer_same_shape, 1},
    NodeRule{"Ceil", infer_same_shape, 1},
    NodeRule{"Floor", infer_same_shape, 1},
    NodeRule{"Round", infer_same_shape, 1},
    NodeRule{"Sqrt", infer_same_shape, 1},
    NodeRule{"Reciprocal", infer_same_shape, 1},
    NodeRule{"Exp", infer_same_shape, 1},
    NodeRule{"Log", infer_same_shape, 1},
    NodeRule{"Erf", infer_same_shape, 1},
    NodeRule{"Sin", infer_same_shape, 1},
    NodeRule{"Cos", infer_same_shape, 1},
    NodeRule{"Tan", infer_same_shape, 1},
    NodeRule{"Asin", infer_same_shape, 1},
    NodeRule{"Acos", infer_same_shape, 1},
    NodeRule{"Atan", infer_same_shape, 1},
    NodeRule{"Sinh", infer_same_shape, 1},
    NodeRule{"Cosh", infer_same_shape, 1},
    NodeRule{"Asinh", infer_same_shape, 1},
    NodeRule{"Acosh", infer_same_shape, 1},
    NodeRule{"Atanh", infer_same_shape, 1},
    NodeRule{"BitwiseNot", infer_same_shape, 1},
    NodeRule{"Identity", infer_same_shape, 1},
    NodeRule{"Not", infer_boolean_shape, 1},
    NodeRule{"IsNaN", infer_boolean_shape, 1},
    NodeRule{"IsInf", infer_boolean_shape, 1},
    NodeRule{"Cast", infer_cast, 1},
    NodeRule{"CastLike", infer_cast_like, 2},
    NodeRule{"Dropout", infer_dropout, 1},
    NodeRule{"CumSum", infer_same_shape, 2},
    NodeRule{"Trilu", infer_same_shape, 1},
    NodeRule{"LRN", infer_same_shape, 1},
    NodeRule{"RandomNormalLike", infer_same_shape, 1},
    NodeRule{"RandomUniformLike", infer_same_shape, 1},
    NodeRule{"Bernoulli", infer_same_shape, 1},
    NodeRule{"LpNormalization", infer_same_shape, 1},
    NodeRule{"MeanVarianceNormalization", infer_same_shape, 1},
    NodeRule{"InstanceNormalization", infer_same_shape, 3},
    NodeRule{"GroupNormalization", infer_same_shape, 3},
    NodeRule{"BatchNormalization", infer_batch_norm, 5},
    NodeRule{"LayerNormalization", infer_norm, 2},
    NodeRule{"RMSNormalization", infer_norm, 2},
    NodeRule{"SimplifiedLayerNormalization", infer_norm, 2},
    NodeRule{"Add", infer_broadcast, 2},
    NodeRule{"Sub", infer_broadcast, 2},
    NodeRule{"Mul", infer_broadcast, 2},
    NodeRule{"Div", infer_broadcast, 2},
    NodeRule{"Pow", infer_broadcast, 2},
    NodeRule{"Mod", infer_broadcast, 2},
    NodeRule{"Min", infer_broadcast, 1},
    NodeRule{"Max", infer_broadcast, 1},
    NodeRule{"Sum", infer_broadcast, 1},
    NodeRule{"Mean", infer_broadcast, 1},
    NodeRule{"BitShift", infer_broadcast, 2},
    NodeRule{"BitwiseAnd", infer_broadcast, 2},
    NodeRule{"BitwiseOr", infer_broadcast, 2},
    NodeRule{"BitwiseXor", infer_broadcast, 2},
    NodeRule{"And", infer_comparison, 2},
    NodeRule{"Or", infer_comparison, 2},
    NodeRule{"Xor", infer_comparison, 2},
    NodeRule{"Equal", infer_comparison, 2},
    NodeRule{"Greater", infer_comparison, 2},
    NodeRule{"GreaterOrEqual", infer_comparison, 2},
    NodeRule{"Less", infer_comparison, 2},
    NodeRule{"LessOrEqual", infer_comparison, 2},
    NodeRule{"Where", infer_where, 3},
    NodeRule{"ReduceMean", infer_reduction, 1},
    NodeRule{"ReduceSum", infer_reduction, 1},
    NodeRule{"ReduceMax", infer_reduction, 1},
    NodeRule{"ReduceMin", infer_reduction, 1},
    NodeRule{"ReduceProd", infer_reduction, 1},
    NodeRule{"ReduceL1", infer_reduction, 1},
    NodeRule{"ReduceL2", infer_reduction, 1},
    NodeRule{"ReduceLogSum", infer_reduction, 1},
    NodeRule{"ReduceLogSumExp", infer_reduction, 1},
    NodeRule{"ReduceSumSquare", infer_reduction, 1},
    NodeRule{"ArgMax", infer_arg_reduction, 1},
    NodeRule{"ArgMin", infer_arg_reduction, 1},
    NodeRule{"Gelu", infer_same_shape, 1, "com.microsoft"},
    NodeRule{"FastGelu", infer_same_shape, 1, "com.microsoft"},
    NodeRule{"BiasGelu", infer_same_shape, 2, "com.microsoft"},
    NodeRule{"QuickGelu", infer_same_shape, 1, "com.microsoft"},
    NodeRule{"LayerNormalization", infer_norm, 2, "com.microsoft"},
    NodeRule{"SimplifiedLayerNormalization", infer_norm, 2, "com.microsoft"},
    NodeRule{"SkipLayerNormalization", infer_skip_layer_norm, 3, "com.microsoft"},
    NodeRule{"SkipSimplifiedLayerNormalization", infer_skip_layer_norm, 3, "com.microsoft"},
};

}  // namespace

const NodeRule* find_elementwise_node_rule(std::string_view type, std::string_view domain) {
  const auto matching_rule =
      std::find_if(kElementwiseNodeRules.begin(), kElementwiseNodeRules.end(),
                   [=](const NodeRule& node) { return node.type == type && node.domain == domain; });
  return matching_rule == kElementwiseNodeRules.end() ? nullptr : &*matching_rule;
}

}  // namespace joulemap::predict::onnx
