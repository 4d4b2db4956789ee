// SPDX-License-Identifier: Apache-2.0
//
// Rules for functions of one tensor in keras.ops and TensorFlow: element-wise functions, sums and means, casts.
#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

// For functions of each element, the name is the form of the operation: relu, exp, sqrt.
std::vector<Shape> each_element(LayerCall& call) {
  const Shape shape = call.shape();
  const std::vector<std::int64_t> axes = call.axes("axis");
  call.activation(call.traits.class_name, shape, axes.empty() ? -1 : axes.front());
  return {shape};
}

std::string_view reduce_form(std::string_view name) {
  if (name.find("mean") != std::string_view::npos || name.find("average") != std::string_view::npos) return "mean";
  if (name.find("max") != std::string_view::npos || name.find("min") != std::string_view::npos) return "amax";
  return "sum";
}

// The reduction of a tensor [batch, rows, width] that it equals: over the width (trailing axes) or all of it. Any other
// axes are treated as rows. `over`: see operation.h.
Parameters reduced(const Shape& shape, const std::vector<bool>& goes) {
  std::size_t first = 0;
  while (first < goes.size() && !goes[first]) ++first;
  std::int64_t gone = 1;
  for (std::size_t i = 0; i < goes.size(); ++i) gone = goes[i] ? saturating_product(gone, shape[i]) : gone;
  const std::int64_t all = elements(shape);
  const bool is_behind =
      std::all_of(goes.begin() + static_cast<std::ptrdiff_t>(first), goes.end(), [](bool go) { return go; });
  if (gone == all) return {{"batch", 1}, {"rows", 1}, {"width", all}, {"over", 2}};
  if (is_behind) return {{"batch", 1}, {"rows", all / gone}, {"width", gone}, {"over", 0}};
  const std::int64_t before = elements(shape, 0, first);
  return {{"batch", before}, {"rows", gone}, {"width", all / gone / before}, {"over", 1}};
}

std::vector<Shape> reduce(LayerCall& call) {
  const Shape shape = call.shape();
  std::vector<bool> goes(shape.size(), call.option("axis") == nullptr);
  for (const std::int64_t each : call.axes("axis")) {
    const std::size_t position = call.axis(each, shape.size());
    if (position < goes.size()) goes[position] = true;
  }
  if (call.failure()) return {shape};
  call.emit(Kind::reduce, reduce_form(call.traits.class_name), reduced(shape, goes));
  const bool keeps = call.flag("keepdims", false) || call.flag("keep_dims", false);
  Shape out;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!goes[i]) out.push_back(shape[i]);
    if (goes[i] && keeps) out.push_back(1);
  }
  return {std::move(out)};
}

std::vector<Shape> cast(LayerCall& call) {
  const Shape shape = call.shape();
  const std::string to = call.word("dtype");
  call.elementwise(Kind::cast, to == "float16" ? "fp16" : to == "bfloat16" ? "bf16" : "fp32", shape);
  return {shape};
}

std::vector<Shape> one_hot(LayerCall& call) {
  Shape out = call.shape();
  out.push_back(call.option("num_classes") != nullptr ? call.size("num_classes") : call.size("depth"));
  call.elementwise(Kind::activation, "onehot", out);
  return {std::move(out)};
}

constexpr NamedRule kRules[] = {
    {"reducemean", reduce},
    {"mean", reduce},
    {"average", reduce},
    {"reducesum", reduce},
    {"sum", reduce},
    {"reducemax", reduce},
    {"max", reduce},
    {"amax", reduce},
    {"reducemin", reduce},
    {"min", reduce},
    {"amin", reduce},
    {"prod", reduce},
    {"reduceprod", reduce},
    {"any", reduce},
    {"all", reduce},
    {"logsumexp", reduce},
    {"reducelogsumexp", reduce},
    {"argmax", reduce},
    {"argmin", reduce},
    {"norm", reduce},
    {"var", reduce},
    {"std", reduce},
    {"reducevariance", reduce},
    {"reducestd", reduce},
    {"cast", cast},
    {"onehot", one_hot},
    {"relu", each_element},
    {"relu6", each_element},
    {"sigmoid", each_element},
    {"silu", each_element},
    {"swish", each_element},
    {"gelu", each_element},
    {"tanh", each_element},
    {"softmax", each_element},
    {"softmaxv2", each_element},
    {"logsoftmax", each_element},
    {"leakyrelu", each_element},
    {"elu", each_element},
    {"selu", each_element},
    {"celu", each_element},
    {"glu", each_element},
    {"mish", each_element},
    {"softplus", each_element},
    {"softsign", each_element},
    {"hardsigmoid", each_element},
    {"hardsilu", each_element},
    {"hardswish", each_element},
    {"hardtanh", each_element},
    {"logsigmoid", each_element},
    {"threshold", each_element},
    {"exp", each_element},
    {"expm1", each_element},
    {"log", each_element},
    {"log1p", each_element},
    {"log2", each_element},
    {"log10", each_element},
    {"sqrt", each_element},
    {"rsqrt", each_element},
    {"square", each_element},
    {"abs", each_element},
    {"absolute", each_element},
    {"negative", each_element},
    {"neg", each_element},
    {"sign", each_element},
    {"reciprocal", each_element},
    {"erf", each_element},
    {"sin", each_element},
    {"cos", each_element},
    {"tan", each_element},
    {"sinh", each_element},
    {"cosh", each_element},
    {"arctan", each_element},
    {"floor", each_element},
    {"ceil", each_element},
    {"round", each_element},
    {"clip", each_element},
    {"clipbyvalue", each_element},
    {"isnan", each_element},
    {"isfinite", each_element},
    {"logicalnot", each_element},
    {"nantonum", each_element},
    {"zeroslike", each_element},
    {"oneslike", each_element},
    {"fulllike", each_element},
    {"cumsum", each_element},
    {"cumprod", each_element},
    {"dropout", each_element},
    {"tril", each_element},
    {"triu", each_element},
};

}  // namespace

std::span<const NamedRule> function_rules() { return kRules; }

}  // namespace joulemap::predict::keras
