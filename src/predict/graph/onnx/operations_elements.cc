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

// A binary operation with the form (operation.h) that matches how `second_sizes` broadcasts to `output_sizes`.
TranslatedOperation translate_binary_operation(Kind kind, const Sizes& out, const Sizes& second_sizes) {
  const std::int64_t output_element_count = onnx_element_count(out);
  const std::int64_t second_element_count = onnx_element_count(second_sizes);
  if (second_element_count <= 1 && output_element_count > 1)
    return {.kind = kind, .form = "scalar", .parameters = tensor_parameters(out)};
  if (second_element_count == output_element_count)
    return {.kind = kind, .form = "same", .parameters = tensor_parameters(out)};
  // Number of trailing dimensions of `second_sizes` that equal those of `output_sizes` (whole), and that are 1 (single).
  std::size_t equal_dimension_count = 0;
  std::size_t unit_dimension_count = 0;
  while (equal_dimension_count < std::min(second_sizes.size(), out.size()) &&
         second_sizes[second_sizes.size() - 1 - equal_dimension_count] == out[out.size() - 1 - equal_dimension_count])
    ++equal_dimension_count;
  while (unit_dimension_count < std::min(second_sizes.size(), out.size()) &&
         second_sizes[second_sizes.size() - 1 - unit_dimension_count] == 1)
    ++unit_dimension_count;
  if (equal_dimension_count > 0 && equal_dimension_count >= unit_dimension_count) {
    const std::int64_t width = product_of_sizes(out, out.size() - equal_dimension_count, out.size());
    return {.kind = kind,
            .form = "last",
            .parameters = {{"batch", 1}, {"rows", width == 0 ? 0 : output_element_count / width}, {"width", width}}};
  }
  const std::int64_t width = product_of_sizes(out, out.size() - unit_dimension_count, out.size());
  const std::int64_t rows = width == 0 ? 0 : output_element_count / width;
  const std::int64_t batch = out.size() > unit_dimension_count && rows > 0 ? std::max<std::int64_t>(1, out[0]) : 1;
  return {.kind = kind, .form = "row", .parameters = {{"batch", batch}, {"rows", rows / batch}, {"width", width}}};
}

std::vector<TranslatedOperation> translate_variadic_operation(const SizedStep& sized_step, Kind kind) {
  // The condition of Where is not counted: it is small compared to its operands.
  const std::size_t first_operand = sized_step.step.type == "Where" ? 1 : 0;
  std::vector<TranslatedOperation> translations;
  for (std::size_t position = first_operand + 1; position < sized_step.input_count(); ++position) {
    if (!sized_step.has_input(position) || !sized_step.has_input(first_operand)) continue;
    const bool is_swapped = onnx_element_count(sized_step.input_sizes(first_operand)) <
                            onnx_element_count(sized_step.input_sizes(position));
    translations.push_back(translate_binary_operation(
        kind, sized_step.output_sizes(),
        is_swapped ? sized_step.input_sizes(first_operand) : sized_step.input_sizes(position)));
  }
  if (translations.empty())
    translations = make_single_operation(Kind::view, "", tensor_parameters(sized_step.output_sizes()));
  return translations;
}

std::string_view clip_activation_form(const SizedStep& sized_step) {
  const auto has_constant_input = [&](std::size_t position, double number) {
    return sized_step.has_input(position) && sized_step.input_value(position).constant_values &&
           sized_step.input_value(position).constant_values->size() == 1 &&
           (*sized_step.input_value(position).constant_values)[0] == number;
  };
  if (has_constant_input(1, 0) && has_constant_input(2, 6)) return "relu6";
  return has_constant_input(1, 0) && !sized_step.has_input(2) ? "relu" : "clip";
}

std::vector<TranslatedOperation> translate_softmax(const SizedStep& sized_step, std::string_view operation_form) {
  const Sizes& sizes = sized_step.input_sizes();
  const auto rank = static_cast<std::int64_t>(sizes.size());
  const std::int64_t axis_attribute = integer_attribute(*sized_step.step.node, "axis", -1);
  const auto axis = static_cast<std::size_t>(std::clamp<std::int64_t>(
      axis_attribute < 0 ? axis_attribute + rank : axis_attribute, 0, std::max<std::int64_t>(0, rank - 1)));
  const std::int64_t width = sizes.empty() ? 1 : sizes[axis];
  const std::int64_t batch = sizes.empty() || width == 0 ? 1 : std::max<std::int64_t>(1, axis == 0 ? 1 : sizes[0]);
  const std::int64_t rows = width == 0 ? 0 : onnx_element_count(sizes) / width / batch;
  return make_single_operation(Kind::activation, operation_form, {{"batch", batch}, {"rows", rows}, {"width", width}});
}

std::string_view reduction_form_of_type(std::string_view type) {
  if (type == "ReduceMean") return "mean";
  return type == "ReduceMax" || type == "ReduceMin" || type == "ArgMax" || type == "ArgMin" ? "amax" : "sum";
}

// As a reduction of a tensor [batch, rows, width] (`over` in operation.h): of all elements, of the width if the last
// dimension is reduced, else of the rows.
std::vector<TranslatedOperation> translate_reduction(const SizedStep& sized_step) {
  const Sizes& input_sizes = sized_step.input_sizes();
  const std::int64_t input_element_count = onnx_element_count(input_sizes);
  const std::int64_t output_element_count = onnx_element_count(sized_step.output_sizes());
  const std::string_view reduction_form = reduction_form_of_type(sized_step.step.type);
  if (input_element_count == output_element_count && reduction_form == "mean")
    return make_single_operation(Kind::view, "", tensor_parameters(input_sizes));
  if (output_element_count <= 1)
    return make_single_operation(Kind::reduce, reduction_form,
                                 {{"batch", 1}, {"rows", 1}, {"width", input_element_count}, {"over", 2}});
  // Whether the last dimension remains in the result.
  const bool keeps_rank = sized_step.output_sizes().size() == input_sizes.size() && input_sizes.back() > 1;
  const bool keeps_last_axis =
      keeps_rank ? sized_step.output_sizes().back() == input_sizes.back()
                 : !sized_step.output_sizes().empty() && sized_step.output_sizes().back() == input_sizes.back();
  if (!keeps_last_axis)
    return make_single_operation(Kind::reduce, reduction_form,
                                 {{"batch", 1},
                                  {"rows", output_element_count},
                                  {"width", input_element_count / output_element_count},
                                  {"over", 0}});
  const std::int64_t width = input_sizes.back() == 0 ? 1 : input_sizes.back();
  return make_single_operation(Kind::reduce, reduction_form,
                               {{"batch", output_element_count / width},
                                {"rows", input_element_count / output_element_count},
                                {"width", width},
                                {"over", 1}});
}

}  // namespace

Translations translate_elementwise_node(const SizedStep& sized_step) {
  const std::string_view type = sized_step.step.type;
  if (sized_step.input_count() > 0 && !sized_step.has_input(0)) return std::nullopt;
  if (type == "Softmax" || type == "LogSoftmax")
    return translate_softmax(sized_step, type == "Softmax" ? "softmax" : "log_softmax");
  if (type == "Clip")
    return make_single_operation(Kind::activation, clip_activation_form(sized_step),
                                 tensor_parameters(sized_step.output_sizes()));
  if (type == "Dropout") return make_single_operation(Kind::dropout, "", tensor_parameters(sized_step.output_sizes()));
  if (type == "BiasGelu") {
    return std::vector<TranslatedOperation>{
        translate_binary_operation(Kind::add, sized_step.output_sizes(), sized_step.input_sizes(1)),
        {.kind = Kind::activation, .form = "gelu", .parameters = tensor_parameters(sized_step.output_sizes())}};
  }
  if (type.substr(0, 6) == "Reduce" || type == "ArgMax" || type == "ArgMin") return translate_reduction(sized_step);
  if (std::find(kMultiplicativeNodeTypes.begin(), kMultiplicativeNodeTypes.end(), type) !=
      kMultiplicativeNodeTypes.end())
    return translate_variadic_operation(sized_step, Kind::multiply);
  if (std::find(kAdditiveNodeTypes.begin(), kAdditiveNodeTypes.end(), type) != kAdditiveNodeTypes.end())
    return translate_variadic_operation(sized_step, Kind::add);
  const auto activation_entry = std::find_if(kActivationNodeTypes.begin(), kActivationNodeTypes.end(),
                                             [=](const OnnxTypeAndForm& name) { return name.first == type; });
  if (activation_entry == kActivationNodeTypes.end()) return std::nullopt;
  const Sizes& sizes = sized_step.input_count() > 0
                           ? larger_tensor_sizes(sized_step.input_sizes(), sized_step.output_sizes())
                           : sized_step.output_sizes();
  return make_single_operation(Kind::activation, activation_entry->second, tensor_parameters(sizes));
}

}  // namespace joulemap::predict::onnx
