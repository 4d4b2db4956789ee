// SPDX-License-Identifier: Apache-2.0
//
// Rules for functions of one tensor in keras.ops and TensorFlow: element-wise functions, sums and means, casts.
#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

// For functions of each element, the name is the form of the operation: relu, exp, sqrt.
std::vector<Shape> apply_elementwise(LayerCall& call) {
  const Shape shape = call.input_shape();
  const std::vector<std::int64_t> axes = call.axes_option("axis");
  call.emit_activation(call.traits.class_name, shape, axes.empty() ? -1 : axes.front());
  return {shape};
}

std::string_view reduction_form(std::string_view name) {
  if (name.find("mean") != std::string_view::npos || name.find("average") != std::string_view::npos) return "mean";
  if (name.find("max") != std::string_view::npos || name.find("min") != std::string_view::npos) return "amax";
  return "sum";
}

// The reduction of a tensor [batch, rows, width] that it equals: over the width (trailing axes) or all of it. Any other
// axes are treated as rows. `over`: see operation.h.
OperationParameters reduction_parameters(const Shape& shape, const std::vector<bool>& is_removed_axis) {
  std::size_t first_removed_axis = 0;
  while (first_removed_axis < is_removed_axis.size() && !is_removed_axis[first_removed_axis]) ++first_removed_axis;
  std::int64_t removed_element_count = 1;
  for (std::size_t i = 0; i < is_removed_axis.size(); ++i)
    removed_element_count =
        is_removed_axis[i] ? saturating_product(removed_element_count, shape[i]) : removed_element_count;
  const std::int64_t total_element_count = element_count(shape);
  const bool is_trailing = std::all_of(is_removed_axis.begin() + static_cast<std::ptrdiff_t>(first_removed_axis),
                                       is_removed_axis.end(), [](bool is_removed) { return is_removed; });
  if (removed_element_count == total_element_count)
    return {{"batch", 1}, {"rows", 1}, {"width", total_element_count}, {"over", 2}};
  if (is_trailing)
    return {{"batch", 1},
            {"rows", total_element_count / removed_element_count},
            {"width", removed_element_count},
            {"over", 0}};
  const std::int64_t leading_element_count = element_count(shape, 0, first_removed_axis);
  return {{"batch", leading_element_count},
          {"rows", removed_element_count},
          {"width", total_element_count / removed_element_count / leading_element_count},
          {"over", 1}};
}

std::vector<Shape> apply_reduction(LayerCall& call) {
  const Shape shape = call.input_shape();
  std::vector<bool> is_removed_axis(shape.size(), call.find_option("axis") == nullptr);
  for (const std::int64_t axis : call.axes_option("axis")) {
    const std::size_t position = call.normalize_axis(axis, shape.size());
    if (position < is_removed_axis.size()) is_removed_axis[position] = true;
  }
  if (call.failure()) return {shape};
  call.emit_operation(Kind::reduce, reduction_form(call.traits.class_name),
                      reduction_parameters(shape, is_removed_axis));
  const bool keeps_dimensions = call.boolean_option("keepdims", false) || call.boolean_option("keep_dims", false);
  Shape out;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!is_removed_axis[i]) out.push_back(shape[i]);
    if (is_removed_axis[i] && keeps_dimensions) out.push_back(1);
  }
  return {std::move(out)};
}

std::vector<Shape> apply_cast(LayerCall& call) {
  const Shape shape = call.input_shape();
  const std::string target_dtype_name = call.text_option("dtype");
  call.emit_elementwise(Kind::cast,
                        target_dtype_name == "float16"    ? "fp16"
                        : target_dtype_name == "bfloat16" ? "bf16"
                                                          : "fp32",
                        shape);
  return {shape};
}

std::vector<Shape> apply_one_hot(LayerCall& call) {
  Shape out = call.input_shape();
  out.push_back(call.find_option("num_classes") != nullptr ? call.required_size_option("num_classes")
                                                           : call.required_size_option("depth"));
  call.emit_elementwise(Kind::activation, "onehot", out);
  return {std::move(out)};
}

constexpr LayerClassRule kFunctionLayerRules[] = {
    {"reducemean", apply_reduction},
    {"mean", apply_reduction},
    {"average", apply_reduction},
    {"reducesum", apply_reduction},
    {"sum", apply_reduction},
    {"reducemax", apply_reduction},
    {"max", apply_reduction},
    {"amax", apply_reduction},
    {"reducemin", apply_reduction},
    {"min", apply_reduction},
    {"amin", apply_reduction},
    {"prod", apply_reduction},
    {"reduceprod", apply_reduction},
    {"any", apply_reduction},
    {"all", apply_reduction},
    {"logsumexp", apply_reduction},
    {"reducelogsumexp", apply_reduction},
    {"argmax", apply_reduction},
    {"argmin", apply_reduction},
    {"norm", apply_reduction},
    {"var", apply_reduction},
    {"std", apply_reduction},
    {"reducevariance", apply_reduction},
    {"reducestd", apply_reduction},
    {"cast", apply_cast},
    {"onehot", apply_one_hot},
    {"relu", apply_elementwise},
    {"relu6", apply_elementwise},
    {"sigmoid", apply_elementwise},
    {"silu", apply_elementwise},
    {"swish", apply_elementwise},
    {"gelu", apply_elementwise},
    {"tanh", apply_elementwise},
    {"softmax", apply_elementwise},
    {"softmaxv2", apply_elementwise},
    {"logsoftmax", apply_elementwise},
    {"leakyrelu", apply_elementwise},
    {"elu", apply_elementwise},
    {"selu", apply_elementwise},
    {"celu", apply_elementwise},
    {"glu", apply_elementwise},
    {"mish", apply_elementwise},
    {"softplus", apply_elementwise},
    {"softsign", apply_elementwise},
    {"hardsigmoid", apply_elementwise},
    {"hardsilu", apply_elementwise},
    {"hardswish", apply_elementwise},
    {"hardtanh", apply_elementwise},
    {"logsigmoid", apply_elementwise},
    {"threshold", apply_elementwise},
    {"exp", apply_elementwise},
    {"expm1", apply_elementwise},
    {"log", apply_elementwise},
    {"log1p", apply_elementwise},
    {"log2", apply_elementwise},
    {"log10", apply_elementwise},
    {"sqrt", apply_elementwise},
    {"rsqrt", apply_elementwise},
    {"square", apply_elementwise},
    {"abs", apply_elementwise},
    {"absolute", apply_elementwise},
    {"negative", apply_elementwise},
    {"neg", apply_elementwise},
    {"sign", apply_elementwise},
    {"reciprocal", apply_elementwise},
    {"erf", apply_elementwise},
    {"sin", apply_elementwise},
    {"cos", apply_elementwise},
    {"tan", apply_elementwise},
    {"sinh", apply_elementwise},
    {"cosh", apply_elementwise},
    {"arctan", apply_elementwise},
    {"floor", apply_elementwise},
    {"ceil", apply_elementwise},
    {"round", apply_elementwise},
    {"clip", apply_elementwise},
    {"clipbyvalue", apply_elementwise},
    {"isnan", apply_elementwise},
    {"isfinite", apply_elementwise},
    {"logicalnot", apply_elementwise},
    {"nantonum", apply_elementwise},
    {"zeroslike", apply_elementwise},
    {"oneslike", apply_elementwise},
    {"fulllike", apply_elementwise},
    {"cumsum", apply_elementwise},
    {"cumprod", apply_elementwise},
    {"dropout", apply_elementwise},
    {"tril", apply_elementwise},
    {"triu", apply_elementwise},
};

}  // namespace

std::span<const LayerClassRule> elementwise_function_rules() { return kFunctionLayerRules; }

}  // namespace joulemap::predict::keras
