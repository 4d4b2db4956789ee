// SPDX-License-Identifier: Apache-2.0
//
// Translates element-wise nodes and reductions.
#include <algorithm>
#include <array>
#include <utility>

#include "predict/graph/onnx/to_operations.h"

namespace joulemap::predict::onnx {
namespace {

using Name = std::pair<std::string_view, std::string_view>;

// Nodes that read and write each element about once, with the form in operation.h.
constexpr std::array kActivations = {
    Name{"Relu", "relu"},
    Name{"Gelu", "gelu"},
    Name{"FastGelu", "gelu"},
    Name{"QuickGelu", "gelu"},
    Name{"Swish", "silu"},
    Name{"Sigmoid", "sigmoid"},
    Name{"Tanh", "tanh"},
    Name{"HardSwish", "hardswish"},
    Name{"HardSigmoid", "hardsigmoid"},
    Name{"LeakyRelu", "leaky_relu"},
    Name{"PRelu", "prelu"},
    Name{"Elu", "elu"},
    Name{"Celu", "celu"},
    Name{"Selu", "selu"},
    Name{"Mish", "mish"},
    Name{"Softplus", "softplus"},
    Name{"Softsign", "softsign"},
    Name{"ThresholdedRelu", "threshold"},
    Name{"Shrink", "shrink"},
    Name{"Abs", "abs"},
    Name{"Neg", "neg"},
    Name{"Sign", "sign"},
    Name{"Ceil", "ceil"},
    Name{"Floor", "floor"},
    Name{"Round", "round"},
    Name{"Sqrt", "sqrt"},
    Name{"Reciprocal", "reciprocal"},
    Name{"Exp", "exp"},
    Name{"Log", "log"},
    Name{"Erf", "erf"},
    Name{"Sin", "sin"},
    Name{"Cos", "cos"},
    Name{"Tan", "tan"},
    Name{"Asin", "asin"},
    Name{"Acos", "acos"},
    Name{"Atan", "atan"},
    Name{"Sinh", "sinh"},
    Name{"Cosh", "cosh"},
    Name{"Asinh", "asinh"},
    Name{"Acosh", "acosh"},
    Name{"Atanh", "atanh"},
    Name{"BitwiseNot", "not"},
    Name{"Not", "not"},
    Name{"IsNaN", "isnan"},
    Name{"IsInf", "isinf"},
    Name{"CumSum", "cumsum"},
    Name{"Trilu", "tril"},
    Name{"LRN", "local_response_norm"},
    Name{"TopK", "topk"},
    Name{"OneHot", "one_hot"},
    Name{"EyeLike", "fill"},
    Name{"Range", "fill"},
    Name{"ConstantOfShape", "fill"},
    Name{"RandomNormal", "fill"},
    Name{"RandomUniform", "fill"},
    Name{"RandomNormalLike", "fill"},
    Name{"RandomUniformLike", "fill"},
    Name{"Bernoulli", "fill"},
    Name{"Hardmax", "softmax"},
    Name{"LpNormalization", "normalize"},
    Name{"RotaryEmbedding", "rotary"},
    Name{"MeanVarianceNormalization", "normalize"},
};

constexpr std::array<std::string_view, 3> kProducts = {"Mul", "Div", "Pow"};
constexpr std::array<std::string_view, 20> kSums = {"Add",
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

// A binary operation with the form (operation.h) that matches how `second` broadcasts to `out`.
Translation of_two(Kind kind, const Sizes& out, const Sizes& second) {
  const std::int64_t all = elements_of(out);
  const std::int64_t few = elements_of(second);
  if (few <= 1 && all > 1) return {.kind = kind, .form = "scalar", .parameters = tensor_parameters(out)};
  if (few == all) return {.kind = kind, .form = "same", .parameters = tensor_parameters(out)};
  // Number of trailing dimensions of `second` that equal those of `out` (whole), and that are 1 (single).
  std::size_t whole = 0;
  std::size_t single = 0;
  while (whole < std::min(second.size(), out.size()) &&
         second[second.size() - 1 - whole] == out[out.size() - 1 - whole])
    ++whole;
  while (single < std::min(second.size(), out.size()) && second[second.size() - 1 - single] == 1) ++single;
  if (whole > 0 && whole >= single) {
    const std::int64_t width = product_of(out, out.size() - whole, out.size());
    return {.kind = kind,
            .form = "last",
            .parameters = {{"batch", 1}, {"rows", width == 0 ? 0 : all / width}, {"width", width}}};
  }
  const std::int64_t width = product_of(out, out.size() - single, out.size());
  const std::int64_t rows = width == 0 ? 0 : all / width;
  const std::int64_t batch = out.size() > single && rows > 0 ? std::max<std::int64_t>(1, out[0]) : 1;
  return {.kind = kind, .form = "row", .parameters = {{"batch", batch}, {"rows", rows / batch}, {"width", width}}};
}

std::vector<Translation> of_several(const SizedStep& at, Kind kind) {
  // The condition of Where is not counted: it is small compared to its operands.
  const std::size_t first = at.step.type == "Where" ? 1 : 0;
  std::vector<Translation> translations;
  for (std::size_t position = first + 1; position < at.count(); ++position) {
    if (!at.has_input(position) || !at.has_input(first)) continue;
    const bool swapped = elements_of(at.in(first)) < elements_of(at.in(position));
    translations.push_back(of_two(kind, at.out(), swapped ? at.in(first) : at.in(position)));
  }
  if (translations.empty()) translations = single_translation(Kind::view, "", tensor_parameters(at.out()));
  return translations;
}

std::string_view form_of_clip(const SizedStep& at) {
  const auto is = [&](std::size_t position, double number) {
    return at.has_input(position) && at.input(position).numbers && at.input(position).numbers->size() == 1 &&
           (*at.input(position).numbers)[0] == number;
  };
  if (is(1, 0) && is(2, 6)) return "relu6";
  return is(1, 0) && !at.has_input(2) ? "relu" : "clip";
}

std::vector<Translation> softmax(const SizedStep& at, std::string_view form) {
  const Sizes& sizes = at.in();
  const auto rank = static_cast<std::int64_t>(sizes.size());
  const std::int64_t given = integer_attribute(*at.step.node, "axis", -1);
  const auto axis = static_cast<std::size_t>(
      std::clamp<std::int64_t>(given < 0 ? given + rank : given, 0, std::max<std::int64_t>(0, rank - 1)));
  const std::int64_t width = sizes.empty() ? 1 : sizes[axis];
  const std::int64_t batch = sizes.empty() || width == 0 ? 1 : std::max<std::int64_t>(1, axis == 0 ? 1 : sizes[0]);
  const std::int64_t rows = width == 0 ? 0 : elements_of(sizes) / width / batch;
  return single_translation(Kind::activation, form, {{"batch", batch}, {"rows", rows}, {"width", width}});
}

std::string_view form_of_reduction(std::string_view type) {
  if (type == "ReduceMean") return "mean";
  return type == "ReduceMax" || type == "ReduceMin" || type == "ArgMax" || type == "ArgMin" ? "amax" : "sum";
}

// As a reduction of a tensor [batch, rows, width] (`over` in operation.h): of all elements, of the width if the last
// dimension is reduced, else of the rows.
std::vector<Translation> reduce(const SizedStep& at) {
  const Sizes& from = at.in();
  const std::int64_t all = elements_of(from);
  const std::int64_t left = elements_of(at.out());
  const std::string_view form = form_of_reduction(at.step.type);
  if (all == left && form == "mean") return single_translation(Kind::view, "", tensor_parameters(from));
  if (left <= 1)
    return single_translation(Kind::reduce, form, {{"batch", 1}, {"rows", 1}, {"width", all}, {"over", 2}});
  // Whether the last dimension remains in the result.
  const bool keeps = at.out().size() == from.size() && from.back() > 1;
  const bool last_stays = keeps ? at.out().back() == from.back() : !at.out().empty() && at.out().back() == from.back();
  if (!last_stays)
    return single_translation(Kind::reduce, form, {{"batch", 1}, {"rows", left}, {"width", all / left}, {"over", 0}});
  const std::int64_t width = from.back() == 0 ? 1 : from.back();
  return single_translation(Kind::reduce, form,
                            {{"batch", left / width}, {"rows", all / left}, {"width", width}, {"over", 1}});
}

}  // namespace

Translations translate_elements(const SizedStep& at) {
  const std::string_view type = at.step.type;
  if (at.count() > 0 && !at.has_input(0)) return std::nullopt;
  if (type == "Softmax" || type == "LogSoftmax") return softmax(at, type == "Softmax" ? "softmax" : "log_softmax");
  if (type == "Clip") return single_translation(Kind::activation, form_of_clip(at), tensor_parameters(at.out()));
  if (type == "Dropout") return single_translation(Kind::dropout, "", tensor_parameters(at.out()));
  if (type == "BiasGelu") {
    return std::vector<Translation>{
        of_two(Kind::add, at.out(), at.in(1)),
        {.kind = Kind::activation, .form = "gelu", .parameters = tensor_parameters(at.out())}};
  }
  if (type.substr(0, 6) == "Reduce" || type == "ArgMax" || type == "ArgMin") return reduce(at);
  if (std::find(kProducts.begin(), kProducts.end(), type) != kProducts.end()) return of_several(at, Kind::multiply);
  if (std::find(kSums.begin(), kSums.end(), type) != kSums.end()) return of_several(at, Kind::add);
  const auto found =
      std::find_if(kActivations.begin(), kActivations.end(), [=](const Name& name) { return name.first == type; });
  if (found == kActivations.end()) return std::nullopt;
  const Sizes& sizes = at.count() > 0 ? larger_sizes(at.in(), at.out()) : at.out();
  return single_translation(Kind::activation, found->second, tensor_parameters(sizes));
}

}  // namespace joulemap::predict::onnx
