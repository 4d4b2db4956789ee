// SPDX-License-Identifier: Apache-2.0
//
// Rules for layers and functions of several tensors: element-wise operations and concatenation.
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {

void emit_binary(LayerCall& call, Kind kind, const Shape& out, const Shape& one, const Shape& other) {
  BroadcastForm pair = broadcast_form(out, one, other);
  call.emit(kind, pair.form, std::move(pair.parameters));
}

namespace {

// Shape of a constant that the document contains as nested lists of numbers; empty for a single number.
Shape shape_of_numbers(const DocumentValue* value) {
  Shape shape;
  while (value != nullptr && value->array() != nullptr && !value->array()->empty() && shape.size() < kMaxDimensions) {
    shape.push_back(static_cast<std::int64_t>(value->array()->size()));
    value = &value->array()->front();
  }
  return value != nullptr && value->number() ? shape : Shape{};  // a list may also name a tensor
}

Shape merged(LayerCall& call, const Shape& one, const Shape& other) {
  const std::optional<Shape> out = broadcast(one, other);
  if (!out) call.fail(fmt::format("{} is incompatible with {}", text(one), text(other)));
  return out.value_or(one);
}

// Combines all inputs pairwise, from first to last.
template <Kind kKind>
std::vector<Shape> merge(LayerCall& call) {
  Shape out = call.shape();
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    const Shape& other = call.shape(i);
    const Shape both = merged(call, out, other);
    emit_binary(call, kKind, both, out, other);
    out = both;
  }
  if (call.inputs.size() == 1) {  // the other operand is a constant in the document
    const DocumentValue* const constant = call.option("y") != nullptr ? call.option("y") : call.option("x2");
    const Shape other = shape_of_numbers(constant);
    const Shape both = merged(call, out, other);
    emit_binary(call, kKind, both, out, other);
    out = both;
  }
  return {std::move(out)};
}

std::vector<Shape> average(LayerCall& call) {
  std::vector<Shape> out = merge<Kind::add>(call);
  call.elementwise(Kind::multiply, "scalar", out.front());
  return out;
}

// CustomScaleLayer of Inception-ResNet: the first input plus the scaled second.
std::vector<Shape> scaled_sum(LayerCall& call) {
  const Shape shape = call.shape(1);
  call.elementwise(Kind::multiply, "scalar", shape);
  call.elementwise(Kind::add, "same", shape);
  return {shape};
}

std::vector<Shape> concatenate(LayerCall& call) {
  Shape out = call.shape();
  const std::vector<std::int64_t> axes = call.axes("axis");
  const std::size_t axis = call.axis(axes.empty() ? -1 : axes.front(), out.size());
  if (call.failure()) return {out};
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    const Shape& other = call.shape(i);
    Shape beside = other;
    if (beside.size() == out.size()) beside[axis] = out[axis];
    if (beside != out) {
      call.fail(fmt::format("{} cannot be concatenated with {}", text(other), text(out)),
                "set an --input whose sides the model can halve without a remainder");
      return {out};
    }
    out[axis] += other[axis];
    if (out[axis] > kMaxElements) return {out};
  }
  const auto parts = static_cast<std::int64_t>(call.inputs.size());
  Shape part = out;
  part[axis] = (out[axis] + parts - 1) / parts;
  Parameters parameters = batch_rows_width(part);
  parameters.set("parts", parts);
  call.emit(Kind::concatenate, "", std::move(parameters));
  return {std::move(out)};
}

std::vector<Shape> stack(LayerCall& call) {
  Shape out = call.shape();
  const std::vector<std::int64_t> axes = call.axes("axis");
  const std::size_t axis = call.axis(axes.empty() ? 0 : axes.front(), out.size() + 1);
  const auto parts = static_cast<std::int64_t>(call.inputs.size());
  Parameters parameters = batch_rows_width(out);
  parameters.set("parts", parts);
  call.emit(Kind::concatenate, "", std::move(parameters));
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), std::max<std::int64_t>(1, parts));
  return {std::move(out)};
}

constexpr NamedRule kRules[] = {
    {"Add", merge<Kind::add>},
    {"Subtract", merge<Kind::add>},
    {"Multiply", merge<Kind::multiply>},
    {"Maximum", merge<Kind::add>},
    {"Minimum", merge<Kind::add>},
    {"Average", average},
    {"CustomScaleLayer", scaled_sum},
    {"Concatenate", concatenate},
    {"concatenate", concatenate},
    {"concat", concatenate},
    {"append", concatenate},
    {"stack", stack},
    {"add", merge<Kind::add>},
    {"addv2", merge<Kind::add>},
    {"addn", merge<Kind::add>},
    {"biasadd", merge<Kind::add>},
    {"subtract", merge<Kind::add>},
    {"sub", merge<Kind::add>},
    {"maximum", merge<Kind::add>},
    {"minimum", merge<Kind::add>},
    {"multiply", merge<Kind::multiply>},
    {"mul", merge<Kind::multiply>},
    {"divide", merge<Kind::multiply>},
    {"dividenonan", merge<Kind::multiply>},
    {"truedivide", merge<Kind::multiply>},
    {"truediv", merge<Kind::multiply>},
    {"realdiv", merge<Kind::multiply>},
    {"floordivide", merge<Kind::multiply>},
    {"floordiv", merge<Kind::multiply>},
    {"mod", merge<Kind::multiply>},
    {"floormod", merge<Kind::multiply>},
    {"power", merge<Kind::multiply>},
    {"pow", merge<Kind::multiply>},
    {"squareddifference", merge<Kind::multiply>},
    {"where", merge<Kind::add>},
    {"arctan2", merge<Kind::add>},
    {"equal", merge<Kind::add>},
    {"notequal", merge<Kind::add>},
    {"greater", merge<Kind::add>},
    {"greaterequal", merge<Kind::add>},
    {"less", merge<Kind::add>},
    {"lessequal", merge<Kind::add>},
    {"logicaland", merge<Kind::add>},
    {"logicalor", merge<Kind::add>},
    {"logicalxor", merge<Kind::add>},
};

}  // namespace

std::span<const NamedRule> merge_rules() { return kRules; }

}  // namespace joulemap::predict::keras
