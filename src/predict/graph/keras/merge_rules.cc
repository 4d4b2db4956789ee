// SPDX-License-Identifier: Apache-2.0
//
// Rules for layers and functions of several tensors: element-wise operations and concatenation.
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {

void emit_binary(LayerCall& call, Kind kind, const Shape& out, const Shape& left_shape, const Shape& right_shape) {
  BroadcastForm pair = broadcast_form(out, left_shape, right_shape);
  call.emit_operation(kind, pair.form, std::move(pair.parameters));
}

namespace {

// Shape of a constant that the document contains as nested lists of numbers; empty for a single number.
Shape parse_integer_shape(const DocumentValue* value) {
  Shape shape;
  while (value != nullptr && value->array() != nullptr && !value->array()->empty() &&
         shape.size() < kMaxTensorDimensions) {
    shape.push_back(static_cast<std::int64_t>(value->array()->size()));
    value = &value->array()->front();
  }
  return value != nullptr && value->number() ? shape : Shape{};  // a list may also name a tensor
}

Shape broadcast_merge_inputs(LayerCall& call, const Shape& left_shape, const Shape& right_shape) {
  const std::optional<Shape> out = broadcast_shapes(left_shape, right_shape);
  if (!out)
    call.set_failure(fmt::format("{} is incompatible with {}", shape_text(left_shape), shape_text(right_shape)));
  return out.value_or(left_shape);
}

// Combines all inputs pairwise, from first to last.
template <Kind kKind>
std::vector<Shape> apply_elementwise_merge(LayerCall& call) {
  Shape out = call.input_shape();
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    const Shape& operand_shape = call.input_shape(i);
    const Shape broadcast_shape = broadcast_merge_inputs(call, out, operand_shape);
    emit_binary(call, kKind, broadcast_shape, out, operand_shape);
    out = broadcast_shape;
  }
  if (call.inputs.size() == 1) {  // the other operand is a constant in the document
    const DocumentValue* const constant =
        call.find_option("y") != nullptr ? call.find_option("y") : call.find_option("x2");
    const Shape operand_shape = parse_integer_shape(constant);
    const Shape broadcast_shape = broadcast_merge_inputs(call, out, operand_shape);
    emit_binary(call, kKind, broadcast_shape, out, operand_shape);
    out = broadcast_shape;
  }
  return {std::move(out)};
}

std::vector<Shape> apply_average(LayerCall& call) {
  std::vector<Shape> out = apply_elementwise_merge<Kind::add>(call);
  call.emit_elementwise(Kind::multiply, "scalar", out.front());
  return out;
}

// CustomScaleLayer of Inception-ResNet: the first input plus the scaled second.
std::vector<Shape> apply_scaled_sum(LayerCall& call) {
  const Shape shape = call.input_shape(1);
  call.emit_elementwise(Kind::multiply, "scalar", shape);
  call.emit_elementwise(Kind::add, "same", shape);
  return {shape};
}

std::vector<Shape> apply_concatenate(LayerCall& call) {
  Shape out = call.input_shape();
  const std::vector<std::int64_t> axes = call.axes_option("axis");
  const std::size_t axis = call.normalize_axis(axes.empty() ? -1 : axes.front(), out.size());
  if (call.failure()) return {out};
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    const Shape& part_shape = call.input_shape(i);
    Shape aligned_part_shape = part_shape;
    if (aligned_part_shape.size() == out.size()) aligned_part_shape[axis] = out[axis];
    if (aligned_part_shape != out) {
      call.set_failure(fmt::format("{} cannot be concatenated with {}", shape_text(part_shape), shape_text(out)),
                       "set an --input whose sides the model can halve without a remainder");
      return {out};
    }
    out[axis] += part_shape[axis];
    if (out[axis] > kMaxElements) return {out};
  }
  const auto parts = static_cast<std::int64_t>(call.inputs.size());
  Shape part = out;
  part[axis] = (out[axis] + parts - 1) / parts;
  OperationParameters parameters = batch_rows_width_parameters(part);
  parameters.set("parts", parts);
  call.emit_operation(Kind::concatenate, "", std::move(parameters));
  return {std::move(out)};
}

std::vector<Shape> apply_stack(LayerCall& call) {
  Shape out = call.input_shape();
  const std::vector<std::int64_t> axes = call.axes_option("axis");
  const std::size_t axis = call.normalize_axis(axes.empty() ? 0 : axes.front(), out.size() + 1);
  const auto parts = static_cast<std::int64_t>(call.inputs.size());
  OperationParameters parameters = batch_rows_width_parameters(out);
  parameters.set("parts", parts);
  call.emit_operation(Kind::concatenate, "", std::move(parameters));
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), std::max<std::int64_t>(1, parts));
  return {std::move(out)};
}

constexpr LayerClassRule kMergeLayerRules[] = {
    {"Add", apply_elementwise_merge<Kind::add>},
    {"Subtract", apply_elementwise_merge<Kind::add>},
    {"Multiply", apply_elementwise_merge<Kind::multiply>},
    {"Maximum", apply_elementwise_merge<Kind::add>},
    {"Minimum", apply_elementwise_merge<Kind::add>},
    {"Average", apply_average},
    {"CustomScaleLayer", apply_scaled_sum},
    {"Concatenate", apply_concatenate},
    {"concatenate", apply_concatenate},
    {"concat", apply_concatenate},
    {"append", apply_concatenate},
    {"stack", apply_stack},
    {"add", apply_elementwise_merge<Kind::add>},
    {"addv2", apply_elementwise_merge<Kind::add>},
    {"addn", apply_elementwise_merge<Kind::add>},
    {"biasadd", apply_elementwise_merge<Kind::add>},
    {"subtract", apply_elementwise_merge<Kind::add>},
    {"sub", apply_elementwise_merge<Kind::add>},
    {"maximum", apply_elementwise_merge<Kind::add>},
    {"minimum", apply_elementwise_merge<Kind::add>},
    {"multiply", apply_elementwise_merge<Kind::multiply>},
    {"mul", apply_elementwise_merge<Kind::multiply>},
    {"divide", apply_elementwise_merge<Kind::multiply>},
    {"dividenonan", apply_elementwise_merge<Kind::multiply>},
    {"truedivide", apply_elementwise_merge<Kind::multiply>},
    {"truediv", apply_elementwise_merge<Kind::multiply>},
    {"realdiv", apply_elementwise_merge<Kind::multiply>},
    {"floordivide", apply_elementwise_merge<Kind::multiply>},
    {"floordiv", apply_elementwise_merge<Kind::multiply>},
    {"mod", apply_elementwise_merge<Kind::multiply>},
    {"floormod", apply_elementwise_merge<Kind::multiply>},
    {"power", apply_elementwise_merge<Kind::multiply>},
    {"pow", apply_elementwise_merge<Kind::multiply>},
    {"squareddifference", apply_elementwise_merge<Kind::multiply>},
    {"where", apply_elementwise_merge<Kind::add>},
    {"arctan2", apply_elementwise_merge<Kind::add>},
    {"equal", apply_elementwise_merge<Kind::add>},
    {"notequal", apply_elementwise_merge<Kind::add>},
    {"greater", apply_elementwise_merge<Kind::add>},
    {"greaterequal", apply_elementwise_merge<Kind::add>},
    {"less", apply_elementwise_merge<Kind::add>},
    {"lessequal", apply_elementwise_merge<Kind::add>},
    {"logicaland", apply_elementwise_merge<Kind::add>},
    {"logicalor", apply_elementwise_merge<Kind::add>},
    {"logicalxor", apply_elementwise_merge<Kind::add>},
};

}  // namespace

std::span<const LayerClassRule> merge_rules() { return kMergeLayerRules; }

}  // namespace joulemap::predict::keras
