// SPDX-License-Identifier: Apache-2.0
//
// Constant folding of small tensors through the nodes that exporters use to compute shapes: Shape, Gather, Concat,
// Slice and arithmetic. Numbers that are not folded are unknown, which is a failure only if a size depends on them.
#include <algorithm>
#include <cmath>

#include "predict/graph/onnx/shapes.h"

namespace joulemap::predict::onnx {
namespace {

using ConstantValues = std::vector<double>;

const ConstantValues& constant_input_values(const ShapeInference& shape_inference, std::size_t position) {
  return *shape_inference.inputs[position]->constant_values;
}

std::optional<double> fold_unary_value(std::string_view type, double x) {
  if (type == "Neg") return -x;
  if (type == "Abs") return std::fabs(x);
  if (type == "Sqrt") return std::sqrt(x);
  if (type == "Floor") return std::floor(x);
  if (type == "Ceil") return std::ceil(x);
  if (type == "Round") return std::nearbyint(x);
  if (type == "Not") return x == 0 ? 1 : 0;
  if (type == "Reciprocal") return 1 / x;
  if (type == "Exp") return std::exp(x);
  if (type == "Log") return std::log(x);
  return std::nullopt;
}

std::optional<double> onnx_integer_division(double x, double y, DataType type) {
  if (is_floating_point(type)) return x / y;
  if (y == 0) return std::nullopt;
  return std::trunc(x / y);
}

std::optional<double> onnx_modulo(double x, double y, DataType type) {
  if (y == 0) return std::nullopt;
  const double remainder = std::fmod(x, y);
  return !is_floating_point(type) && remainder != 0 && (remainder < 0) != (y < 0) ? remainder + y : remainder;
}

std::optional<double> fold_binary_value(std::string_view type, double x, double y, DataType data_type) {
  if (type == "Add" || type == "Sum") return x + y;
  if (type == "Sub") return x - y;
  if (type == "Mul") return x * y;
  if (type == "Div") return onnx_integer_division(x, y, data_type);
  if (type == "Mod") return onnx_modulo(x, y, data_type);
  if (type == "Pow") return std::pow(x, y);
  if (type == "Min") return std::min(x, y);
  if (type == "Max") return std::max(x, y);
  if (type == "Equal") return x == y;
  if (type == "Greater") return x > y;
  if (type == "GreaterOrEqual") return x >= y;
  if (type == "Less") return x < y;
  if (type == "LessOrEqual") return x <= y;
  if (type == "And") return x != 0 && y != 0;
  if (type == "Or") return x != 0 || y != 0;
  if (type == "Xor") return (x != 0) != (y != 0);
  return std::nullopt;
}

// Maps element `index` of the broadcast shape `output_sizes` to its element in `sizes`.
std::size_t broadcast_source_index(std::size_t index, const Sizes& output_sizes, const Sizes& sizes) {
  std::size_t position = 0;
  std::size_t stride = 1;
  for (std::size_t i = 0; i < output_sizes.size(); ++i) {
    const auto width = static_cast<std::size_t>(output_sizes[output_sizes.size() - 1 - i]);
    if (i < sizes.size()) {
      const auto size = static_cast<std::size_t>(sizes[sizes.size() - 1 - i]);
      position += size == 1 ? 0 : index % width * stride;
      stride *= size;
    }
    index /= width;
  }
  return position;
}

std::optional<ConstantValues> fold_binary(const ShapeInference& shape_inference, const Sizes& out) {
  // Only types that fold_binary_value() knows are sure to broadcast.
  if (!shape_inference.has_input(1) || !fold_binary_value(shape_inference.node.operator_type, 1, 1, DataType::float32))
    return std::nullopt;
  ConstantValues result;
  const auto count = static_cast<std::size_t>(onnx_element_count(out));
  for (std::size_t i = 0; i < count; ++i) {
    const double x =
        constant_input_values(shape_inference, 0)[broadcast_source_index(i, out, shape_inference.input_sizes(0))];
    const double y =
        constant_input_values(shape_inference, 1)[broadcast_source_index(i, out, shape_inference.input_sizes(1))];
    const std::optional<double> number =
        fold_binary_value(shape_inference.node.operator_type, x, y, shape_inference.inputs[0]->type);
    if (!number) return std::nullopt;
    result.push_back(*number);
  }
  return result;
}

ConstantValues fold_where(const ShapeInference& shape_inference, const Sizes& out) {
  ConstantValues result;
  const auto count = static_cast<std::size_t>(onnx_element_count(out));
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_condition_true =
        constant_input_values(shape_inference, 0)[broadcast_source_index(i, out, shape_inference.input_sizes(0))] != 0;
    const std::size_t source_input = is_condition_true ? 1 : 2;
    result.push_back(constant_input_values(
        shape_inference, source_input)[broadcast_source_index(i, out, shape_inference.input_sizes(source_input))]);
  }
  return result;
}

ConstantValues fold_expand(const ShapeInference& shape_inference, const Sizes& out) {
  ConstantValues result;
  const auto count = static_cast<std::size_t>(onnx_element_count(out));
  for (std::size_t i = 0; i < count; ++i)
    result.push_back(
        constant_input_values(shape_inference, 0)[broadcast_source_index(i, out, shape_inference.input_sizes(0))]);
  return result;
}

ConstantValues fold_cast(const ShapeInference& shape_inference) {
  ConstantValues result = constant_input_values(shape_inference, 0);
  const DataType target_type = shape_inference.outputs[0].type;
  for (double& number : result) {
    if (target_type == DataType::boolean) number = number != 0 ? 1 : 0;
    if (target_type != DataType::boolean && !is_floating_point(target_type)) number = std::trunc(number);
  }
  return result;
}

// Only from one-dimensional data: shapes are lists, and exporters pick entries of them.
std::optional<ConstantValues> fold_gather(const ShapeInference& shape_inference) {
  if (shape_inference.input_sizes(0).size() != 1) return std::nullopt;
  const ConstantValues& data = constant_input_values(shape_inference, 0);
  ConstantValues result;
  for (const double index : constant_input_values(shape_inference, 1)) {
    const double position = index < 0 ? index + static_cast<double>(data.size()) : index;
    if (!(position >= 0 && position < static_cast<double>(data.size()))) return std::nullopt;
    result.push_back(data[static_cast<std::size_t>(position)]);
  }
  return result;
}

// For one dimension of the output: offset of its first element in the input, and stride between its elements.
struct StridedAxis {
  std::int64_t begin = 0;
  std::int64_t step = 0;
};

std::optional<ConstantValues> fold_strided_view(const ShapeInference& shape_inference, const Sizes& out,
                                                const std::vector<StridedAxis>& strided_axes) {
  const ConstantValues& source_values = constant_input_values(shape_inference, 0);
  ConstantValues result;
  for (std::int64_t i = 0; i < onnx_element_count(out); ++i) {
    std::int64_t remaining_index = i;
    std::int64_t position = 0;
    for (std::size_t axis = out.size(); axis-- > 0; remaining_index /= out[axis]) {
      position += strided_axes[axis].begin + remaining_index % out[axis] * strided_axes[axis].step;
    }
    if (position < 0 || position >= static_cast<std::int64_t>(source_values.size())) return std::nullopt;
    result.push_back(source_values[static_cast<std::size_t>(position)]);
  }
  return result;
}

std::vector<std::int64_t> row_major_strides(const Sizes& sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

std::optional<ConstantValues> fold_slice(const ShapeInference& shape_inference, const Sizes& out) {
  const std::optional<Sizes> begins = shape_inference.constant_input_integers(1);
  const std::optional<Sizes> axes = shape_inference.has_input(3) ? shape_inference.constant_input_integers(3) : Sizes();
  const std::optional<Sizes> steps =
      shape_inference.has_input(4) ? shape_inference.constant_input_integers(4) : Sizes();
  if (!begins || !axes || !steps) return std::nullopt;
  const Sizes& input_sizes = shape_inference.input_sizes(0);
  const std::vector<std::int64_t> strides = row_major_strides(input_sizes);
  std::vector<StridedAxis> strided_axes(input_sizes.size());
  for (std::size_t i = 0; i < input_sizes.size(); ++i) strided_axes[i].step = strides[i];
  for (std::size_t i = 0; i < begins->size(); ++i) {
    const auto number = i < axes->size() ? (*axes)[i] : static_cast<std::int64_t>(i);
    const Result<std::size_t> axis = resolve_axis(number, input_sizes.size());
    if (!axis) return std::nullopt;
    const std::int64_t size = input_sizes[*axis];
    const std::int64_t begin = (*begins)[i] < 0 ? (*begins)[i] + size : (*begins)[i];
    const std::int64_t max_step = kMaxStoredConstantValues;
    strided_axes[*axis].begin =
        std::clamp<std::int64_t>(begin, 0, std::max<std::int64_t>(0, size - 1)) * strides[*axis];
    strided_axes[*axis].step = std::clamp(i < steps->size() ? (*steps)[i] : 1, -max_step, max_step) * strides[*axis];
  }
  return fold_strided_view(shape_inference, out, strided_axes);
}

std::optional<ConstantValues> fold_transpose(const ShapeInference& shape_inference, const Sizes& out) {
  const Sizes order = integers_attribute(shape_inference.node, "perm");
  const std::vector<std::int64_t> strides = row_major_strides(shape_inference.input_sizes(0));
  std::vector<StridedAxis> strided_axes(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t reversed_axis = out.size() - 1 - i;
    const Result<std::size_t> axis = order.empty() ? reversed_axis : resolve_axis(order[i], out.size());
    if (!axis) return std::nullopt;
    strided_axes[i].step = strides[*axis];
  }
  return fold_strided_view(shape_inference, out, strided_axes);
}

std::optional<ConstantValues> fold_concat(const ShapeInference& shape_inference) {
  const std::int64_t axis = integer_attribute(shape_inference.node, "axis", 0);
  if (axis != 0 && axis + static_cast<std::int64_t>(shape_inference.input_sizes(0).size()) != 0) return std::nullopt;
  ConstantValues result;
  for (std::size_t position = 0; position < shape_inference.inputs.size(); ++position) {
    if (!shape_inference.has_input(position)) return std::nullopt;
    result.insert(result.end(), constant_input_values(shape_inference, position).begin(),
                  constant_input_values(shape_inference, position).end());
  }
  return result;
}

std::optional<ConstantValues> fold_reduce(const ShapeInference& shape_inference, const Sizes& out) {
  if (onnx_element_count(out) != 1) return std::nullopt;
  const ConstantValues& numbers = constant_input_values(shape_inference, 0);
  if (numbers.empty()) return std::nullopt;
  double result = numbers[0];
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    if (shape_inference.node.operator_type == "ReduceProd") result *= numbers[i];
    if (shape_inference.node.operator_type == "ReduceSum") result += numbers[i];
    if (shape_inference.node.operator_type == "ReduceMax") result = std::max(result, numbers[i]);
    if (shape_inference.node.operator_type == "ReduceMin") result = std::min(result, numbers[i]);
  }
  return ConstantValues{result};
}

std::optional<ConstantValues> try_fold_node(const ShapeInference& shape_inference, const Sizes& out) {
  const std::string_view type = shape_inference.node.operator_type;
  if (type == "Reshape" || type == "Squeeze" || type == "Unsqueeze" || type == "Flatten" || type == "Identity") {
    return constant_input_values(shape_inference, 0);
  }
  if (type == "Cast" || type == "CastLike") return fold_cast(shape_inference);
  if (type == "Gather") return fold_gather(shape_inference);
  if (type == "Slice") return fold_slice(shape_inference, out);
  if (type == "Transpose") return fold_transpose(shape_inference, out);
  if (type == "Concat") return fold_concat(shape_inference);
  if (type == "Where") return fold_where(shape_inference, out);
  if (type == "Expand") return fold_expand(shape_inference, out);
  if (type.substr(0, 6) == "Reduce") {
    const bool is_foldable = type == "ReduceProd" || type == "ReduceSum" || type == "ReduceMax" || type == "ReduceMin";
    return is_foldable ? fold_reduce(shape_inference, out) : std::nullopt;
  }
  if (shape_inference.inputs.size() == 2) return fold_binary(shape_inference, out);
  if (shape_inference.inputs.size() != 1) return std::nullopt;
  ConstantValues result;
  for (const double x : constant_input_values(shape_inference, 0)) {
    const std::optional<double> number = fold_unary_value(type, x);
    if (!number) return std::nullopt;
    result.push_back(*number);
  }
  return result;
}

}  // namespace

void fold_constant_outputs(ShapeInference& shape_inference) {
  if (shape_inference.outputs.size() != 1 || shape_inference.outputs[0].constant_values ||
      !shape_inference.outputs[0].sizes || shape_inference.inputs.empty())
    return;
  if (!shape_inference.node.operator_domain.empty()) return;
  for (const Value* const input : shape_inference.inputs) {
    if (input != nullptr && !input->constant_values) return;
  }
  if (shape_inference.inputs[0] == nullptr) return;
  const Sizes& out = *shape_inference.outputs[0].sizes;
  const std::int64_t count = onnx_element_count(out);
  if (count > static_cast<std::int64_t>(kMaxStoredConstantValues)) return;
  std::optional<ConstantValues> numbers = try_fold_node(shape_inference, out);
  if (numbers && numbers->size() == static_cast<std::size_t>(count))
    shape_inference.outputs[0].constant_values = std::move(numbers);
}

}  // namespace joulemap::predict::onnx
