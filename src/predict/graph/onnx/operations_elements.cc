// SPDX-License-Identifier: Apache-2.0
//
// Translates element-wise nodes and reductions.
#include <algorithm>
#include <array>
#include <utility>

#include "predict/graph/onnx/to_operations.h"

namespace joulemap::predict::onnx {
namespace {

using OnnxTypeAndForm = std::pair<std::string_view, std::string_view>;

// Nodes that read and write each element about once, with the form in operation.h.
constexpr std::array kActivationNodeTypes = {
    OnnxTypeAndForm{"Relu", "relu"},
    OnnxTypeAndForm{"Gelu", "gelu"},
    OnnxTypeAndForm{"FastGelu", "gelu"},
    OnnxTypeAndForm{"QuickGelu", "gelu"},
    OnnxTypeAndForm{"Swish", "silu"},
    OnnxTypeAndForm{"Sigmoid", "sigmoid"},
    OnnxTypeAndForm{"Tanh", "tanh"},
    OnnxTypeAndForm{"HardSwish", "hardswish"},
    OnnxTypeAndForm{"HardSigmoid", "hardsigmoid"},
    OnnxTypeAndForm{"LeakyRelu", "leaky_relu"},
    OnnxTypeAndForm{"PRelu", "prelu"},
    OnnxTypeAndForm{"Elu", "elu"},
    OnnxTypeAndForm{"Celu", "celu"},
    OnnxTypeAndForm{"Selu", "selu"},
    OnnxTypeAndForm{"Mish", "mish"},
    OnnxTypeAndForm{"Softplus", "softplus"},
    OnnxTypeAndForm{"Softsign", "softsign"},
    OnnxTypeAndForm{"ThresholdedRelu", "threshold"},
    OnnxTypeAndForm{"Shrink", "shrink"},
    OnnxTypeAndForm{"Abs", "abs"},
    OnnxTypeAndForm{"Neg", "neg"},
    OnnxTypeAndForm{"Sign", "sign"},
    OnnxTypeAndForm{"Ceil", "ceil"},
    OnnxTypeAndForm{"Floor", "floor"},
    OnnxTypeAndForm{"Round", "round"},
    OnnxTypeAndForm{"Sqrt", "sqrt"},
    OnnxTypeAndForm{"Reciprocal", "reciprocal"},
    OnnxTypeAndForm{"Exp", "exp"},
    OnnxTypeAndForm{"Log", "log"},
    OnnxTypeAndForm{"Erf", "erf"},
    OnnxTypeAndForm{"Sin", "sin"},
    OnnxTypeAndForm{"Cos", "cos"},
    OnnxTypeAndForm{"Tan", "tan"},
    OnnxTypeAndForm{"Asin", "asin"},
    OnnxTypeAndForm{"Acos", "acos"},
    OnnxTypeAndForm{"Atan", "atan"},
    OnnxTypeAndForm{"Sinh", "sinh"},
    OnnxTypeAndForm{"Cosh", "cosh"},
    OnnxTypeAndForm{"Asinh", "asinh"},
    OnnxTypeAndForm{"Acosh", "acosh"},
    OnnxTypeAndForm{"Atanh", "atanh"},
    OnnxTypeAndForm{"BitwiseNot", "not"},
    OnnxTypeAndForm{"Not", "not"},
    OnnxTypeAndForm{"IsNaN", "isnan"},
    OnnxTypeAndForm{"IsInf", "isinf"},
    OnnxTypeAndForm{"CumSum", "cumsum"},
    OnnxTypeAndForm{"Trilu", "tril"},
    OnnxTypeAndForm{"LRN", "local_response_norm"},
    OnnxTypeAndForm{"TopK", "topk"},
    OnnxTypeAndForm{"OneHot", "one_hot"},
    OnnxTypeAndForm{"EyeLike", "fill"},
    OnnxTypeAndForm{"Range", "fill"},
    OnnxTypeAndForm{"ConstantOfShape", "fill"},
    OnnxTypeAndForm{"RandomNormal", "fill"},
    OnnxTypeAndForm{"RandomUniform", "fill"},
    OnnxTypeAndForm{"RandomNormalLike", "fill"},
    OnnxTypeAndForm{"RandomUniformLike", "fill"},
    OnnxTypeAndForm{"Bernoulli", "fill"},
    OnnxTypeAndForm{"Hardmax", "softmax"},
    OnnxTypeAndForm{"LpNormalization", "normalize"},
    OnnxTypeAndForm{"RotaryEmbedding", "rotary"},
    OnnxTypeAndForm{"MeanVarianceNormalization", "normalize"},
};

constexpr std::array<std::string_view, 3> kMultiplicativeNodeTypes = {"Mul", "Div", "Pow"};
constexpr std::array<std::string_view, 20> kAdditiveNodeTypes = {"Add",
                                                                 "Sub",
                                                                 "Mod",
                                                                 "Min",
                                                                 "Max",
                                                                 "Sum",
                                                                 "Mean",
                                                                 "And",
                                                                 "Or",
                                                                 "Xor",
                                                                 "Equal",
                                                                 "Greater",
                                                                 "GreaterOrEqual",
                                                                 "Less",
                                                                 "LessOrEqual",
                                                                 "BitShift",
                                                                 "BitwiseAnd",
                                                                 "BitwiseOr",
                                                                 "BitwiseXor",
                                                                 "Where"};

// A binary operation with the form (operation.h) that matches how `second` broadcasts to `output_sizes`.
TranslatedOperation translate_binary_operation(Kind kind, const Sizes& out, const Sizes& second) {
  const std::int64_t all = onnx_element_count(out);
  const std::int64_t few = onnx_element_count(second);
  if (few <= 1 && all > 1) return {.kind = kind, .form = "scalar", .parameters = tensor_parameters(out)};
  if (few == all) return {.kind = kind, .form = "same", .parameters = tensor_parameters(out)};
  // Number of trailing dimensions of `second` that equal those of `output_sizes` (whole), and that are 1 (single).
  std::size_t whole = 0;
  std::size_t single = 0;
  while (whole < std::min(second.size(), out.size()) &&
         second[second.size() - 1 - whole] == out[out.size() - 1 - whole])
    ++whole;
  while (single < std::min(second.size(), out.size()) && second[second.size() - 1 - single] == 1) ++single;
  if (whole > 0 && whole >= single) {
    const std::int64_t width = product_of_sizes(out, out.size() - whole, out.size());
    return {.kind = kind,
            .form = "last",
            .parameters = {{"batch", 1}, {"rows", width == 0 ? 0 : all / width}, {"width", width}}};
  }
  const std::int64_t width = product_of_sizes(out, out.size() - single, out.size());
  const std::int64_t rows = width == 0 ? 0 : all / width;
  const std::int64_t batch = out.size() > single && rows > 0 ? std::max<std::int64_t>(1, out[0]) : 1;
  return {.kind = kind, .form = "row", .parameters = {{"batch", batch}, {"rows", rows / batch}, {"width", width}}};
}

std::vector<TranslatedOperation> translate_variadic_operation(const SizedStep& at, Kind kind) {
  // The condition of Where is not counted: it is small compared to its operands.
  const std::size_t first = at.step.type == "Where" ? 1 : 0;
  std::vector<TranslatedOperation> translations;
  for (std::size_t position = first + 1; position < at.input_count(); ++position) {
    if (!at.has_input(position) || !at.has_input(first)) continue;
    const bool swapped = onnx_element_count(at.input_sizes(first)) < onnx_element_count(at.input_sizes(position));
    translations.push_back(translate_binary_operation(kind, at.output_sizes(),
                                                      swapped ? at.input_sizes(first) : at.input_sizes(position)));
  }
  if (translations.empty()) translations = make_single_operation(Kind::view, "", tensor_parameters(at.output_sizes()));
  return translations;
}

std::string_view clip_activation_form(const SizedStep& at) {
  const auto is = [&](std::size_t position, double number) {
    return at.has_input(position) && at.input_value(position).constant_values &&
           at.input_value(position).constant_values->size() == 1 &&
           (*at.input_value(position).constant_values)[0] == number;
  };
  if (is(1, 0) && is(2, 6)) return "relu6";
  return is(1, 0) && !at.has_input(2) ? "relu" : "clip";
}

std::vector<TranslatedOperation> translate_softmax(const SizedStep& at, std::string_view form) {
  const Sizes& sizes = at.input_sizes();
  const auto rank = static_cast<std::int64_t>(sizes.size());
  const std::int64_t given = integer_attribute(*at.step.node, "axis", -1);
  const auto axis = static_cast<std::size_t>(
      std::clamp<std::int64_t>(given < 0 ? given + rank : given, 0, std::max<std::int64_t>(0, rank - 1)));
  const std::int64_t width = sizes.empty() ? 1 : sizes[axis];
  const std::int64_t batch = sizes.empty() || width == 0 ? 1 : std::max<std::int64_t>(1, axis == 0 ? 1 : sizes[0]);
  const std::int64_t rows = width == 0 ? 0 : onnx_element_count(sizes) / width / batch;
  return make_single_operation(Kind::activation, form, {{"batch", batch}, {"rows", rows}, {"width", width}});
}

std::string_view reduction_form_of_type(std::string_view type) {
  if (type == "ReduceMean") return "mean";
  return type == "ReduceMax" || type == "ReduceMin" || type == "ArgMax" || type == "ArgMin" ? "amax" : "sum";
}

// As a reduction of a tensor [batch, rows, width] (`over` in operation.h): of all elements, of the width if the last
// dimension is reduced, else of the rows.
std::vector<TranslatedOperation> translate_reduction(const SizedStep& at) {
  const Sizes& from = at.input_sizes();
  const std::int64_t all = onnx_element_count(from);
  const std::int64_t left = onnx_element_count(at.output_sizes());
  const std::string_view form = reduction_form_of_type(at.step.type);
  if (all == left && form == "mean") return make_single_operation(Kind::view, "", tensor_parameters(from));
  if (left <= 1)
    return make_single_operation(Kind::reduce, form, {{"batch", 1}, {"rows", 1}, {"width", all}, {"over", 2}});
  // Whether the last dimension remains in the result.
  const bool keeps_rank = at.output_sizes().size() == from.size() && from.back() > 1;
  const bool keeps_last_axis = keeps_rank ? at.output_sizes().back() == from.back()
                                          : !at.output_sizes().empty() && at.output_sizes().back() == from.back();
  if (!keeps_last_axis)
    return make_single_operation(Kind::reduce, form,
                                 {{"batch", 1}, {"rows", left}, {"width", all / left}, {"over", 0}});
  const std::int64_t width = from.back() == 0 ? 1 : from.back();
  return make_single_operation(Kind::reduce, form,
                               {{"batch", left / width}, {"rows", all / left}, {"width", width}, {"over", 1}});
}

}  // namespace

Translations translate_elementwise_node(const SizedStep& at) {
  const std::string_view type = at.step.type;
  if (at.input_count() > 0 && !at.has_input(0)) return std::nullopt;
  if (type == "Softmax" || type == "LogSoftmax")
    return translate_softmax(at, type == "Softmax" ? "softmax" : "log_softmax");
  if (type == "Clip")
    return make_single_operation(Kind::activation, clip_activation_form(at), tensor_parameters(at.output_sizes()));
  if (type == "Dropout") return make_single_operation(Kind::dropout, "", tensor_parameters(at.output_sizes()));
  if (type == "BiasGelu") {
    return std::vector<TranslatedOperation>{
        translate_binary_operation(Kind::add, at.output_sizes(), at.input_sizes(1)),
        {.kind = Kind::activation, .form = "gelu", .parameters = tensor_parameters(at.output_sizes())}};
  }
  if (type.substr(0, 6) == "Reduce" || type == "ArgMax" || type == "ArgMin") return translate_reduction(at);
  if (std::find(kMultiplicativeNodeTypes.begin(), kMultiplicativeNodeTypes.end(), type) !=
      kMultiplicativeNodeTypes.end())
    return translate_variadic_operation(at, Kind::multiply);
  if (std::find(kAdditiveNodeTypes.begin(), kAdditiveNodeTypes.end(), type) != kAdditiveNodeTypes.end())
    return translate_variadic_operation(at, Kind::add);
  const auto found = std::find_if(kActivationNodeTypes.begin(), kActivationNodeTypes.end(),
                                  [=](const OnnxTypeAndForm& name) { return name.first == type; });
  if (found == kActivationNodeTypes.end()) return std::nullopt;
  const Sizes& sizes =
      at.input_count() > 0 ? larger_tensor_sizes(at.input_sizes(), at.output_sizes()) : at.output_sizes();
  return make_single_operation(Kind::activation, found->second, tensor_parameters(sizes));
}

}  // namespace joulemap::predict::onnx
