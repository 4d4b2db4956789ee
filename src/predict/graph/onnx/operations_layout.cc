// SPDX-License-Identifier: Apache-2.0
//
// Translates nodes that move data or change its layout. As in PyTorch, a transposition is free until an operation needs
// its result contiguous.
#include <algorithm>
#include <array>

#include "predict/graph/onnx/to_operations.h"

namespace joulemap::predict::onnx {
namespace {

bool is_type_among(std::string_view type, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

std::vector<TranslatedOperation> translate_view(const SizedStep& sized_step) {
  return make_single_operation(Kind::view, "", tensor_parameters(sized_step.output_sizes()));
}

Sizes permutation_of_transpose(const SizedStep& sized_step) {
  Sizes order = integers_attribute(*sized_step.step.node, "perm");
  for (std::size_t i = sized_step.input_sizes().size(); order.size() < sized_step.input_sizes().size() && i > 0; --i) {
    order.push_back(static_cast<std::int64_t>(i) - 1);
  }
  for (std::int64_t& axis : order) axis += axis < 0 ? static_cast<std::int64_t>(order.size()) : 0;
  return order;
}

// Whether a transposition moves no data: dimensions larger than 1 keep their order.
bool keeps_memory_order(const Sizes& order, const Sizes& input_sizes) {
  std::int64_t previous = -1;
  for (const std::int64_t axis : order) {
    if (input_sizes[static_cast<std::size_t>(axis)] == 1) continue;
    if (axis < previous) return false;
    previous = axis;
  }
  return true;
}

// Whether a reshape of transposed data needs no copy: every new dimension must lie within old dimensions that are
// contiguous in memory.
bool can_reshape_without_copy(const Sizes& order, const Sizes& input_sizes, const Sizes& target) {
  std::size_t target_axis = 0;
  std::size_t block_begin = 0;
  while (block_begin < order.size()) {
    std::int64_t block = input_sizes[static_cast<std::size_t>(order[block_begin])];
    std::size_t end = block_begin + 1;
    while (end < order.size() &&
           (order[end] == order[end - 1] + 1 || input_sizes[static_cast<std::size_t>(order[end])] == 1)) {
      block *= input_sizes[static_cast<std::size_t>(order[end++])];
    }
    std::int64_t covered_element_count = 1;
    while (target_axis < target.size() && covered_element_count < block) covered_element_count *= target[target_axis++];
    if (covered_element_count != block) return false;
    block_begin = end;
  }
  return true;
}

// Whether a step that reads transposed data needs it contiguous. Norms, softmax and some reshapes do; products, sums
// and convolutions accept strides.
bool consumer_needs_contiguous_input(const SizedStep& sized_step, const ProgramStep& consumer, const Sizes& order) {
  if (is_type_among(consumer.type, {"Reshape", "Flatten"})) {
    const Value& result = sized_step.program.values[static_cast<std::size_t>(consumer.outputs[0])];
    return !result.sizes || !can_reshape_without_copy(order, sized_step.input_sizes(), *result.sizes);
  }
  return is_type_among(consumer.type,
                       {"LayerNormalization", "RMSNormalization", "Softmax", "LogSoftmax", "DepthToSpace"});
}

std::string_view transpose_form(const Sizes& order) {
  if (order == Sizes{0, 2, 3, 1} || order == Sizes{0, 2, 1}) return "channels-last";
  if (order == Sizes{0, 3, 1, 2}) return "channels-first";
  return order == Sizes{1, 0} ? "transpose" : "heads";
}

std::vector<TranslatedOperation> translate_transpose(const SizedStep& sized_step) {
  const Sizes order = permutation_of_transpose(sized_step);
  // The output of attention already has this layout.
  const ProgramStep* const input_producer = sized_step.producer(0);
  const bool after_attention =
      input_producer != nullptr && input_producer->type == "Attention" && order == Sizes{0, 2, 1, 3};
  if (keeps_memory_order(order, sized_step.input_sizes()) || after_attention) return translate_view(sized_step);
  for (int consumer : sized_step.output_value().consumer_steps) {
    const ProgramStep* step = &sized_step.program.steps[static_cast<std::size_t>(consumer)];
    if (step->fused_into != kNoIndex) step = &sized_step.program.steps[static_cast<std::size_t>(step->fused_into)];
    if (consumer_needs_contiguous_input(sized_step, *step, order))
      return make_single_operation(Kind::reshape, transpose_form(order), tensor_parameters(sized_step.output_sizes()));
  }
  return translate_view(sized_step);
}

// An Expand is free unless a reshape follows: broadcast elements have stride 0, so the reshape copies them.
std::vector<TranslatedOperation> translate_expand(const SizedStep& sized_step) {
  const bool repeats = onnx_element_count(sized_step.input_sizes()) != onnx_element_count(sized_step.output_sizes());
  for (const int consumer : sized_step.output_value().consumer_steps) {
    const ProgramStep& step = sized_step.program.steps[static_cast<std::size_t>(consumer)];
    const bool is_reshape_step = step.fused_into == kNoIndex && is_type_among(step.type, {"Reshape", "Flatten"});
    if (repeats && is_reshape_step)
      return make_single_operation(Kind::reshape, "heads", tensor_parameters(sized_step.output_sizes()));
  }
  return translate_view(sized_step);
}

// The parameters describe one part: `rows` is the total length along the axis, divided evenly.
std::vector<TranslatedOperation> translate_concatenation(const SizedStep& sized_step) {
  const Sizes& out = sized_step.output_sizes();
  std::int64_t parts = 0;
  for (std::size_t position = 0; position < sized_step.input_count(); ++position)
    parts += sized_step.has_input(position) && onnx_element_count(sized_step.input_sizes(position)) > 0 ? 1 : 0;
  if (parts < 2) return translate_view(sized_step);
  const std::int64_t axis_attribute = integer_attribute(*sized_step.step.node, "axis", 0);
  const auto axis = static_cast<std::size_t>(axis_attribute < 0 ? axis_attribute + static_cast<std::int64_t>(out.size())
                                                                : axis_attribute);
  const std::int64_t length = (out[axis] + parts - 1) / parts;
  return make_single_operation(Kind::concatenate, "",
                               {{"batch", product_of_sizes(out, 0, axis)},
                                {"rows", length},
                                {"width", product_of_sizes(out, axis + 1, out.size())},
                                {"parts", parts}});
}

bool has_negative_slice_step(const SizedStep& sized_step) {
  if (!sized_step.has_input(4) || !sized_step.input_value(4).constant_values) return false;
  return std::any_of(sized_step.input_value(4).constant_values->begin(),
                     sized_step.input_value(4).constant_values->end(), [](double step) { return step < 0; });
}

std::string_view cast_target_dtype_name(DataType type, Dtype real_dtype) {
  switch (type) {
    case DataType::float16:
      return "fp16";
    case DataType::bfloat16:
      return "bf16";
    case DataType::float32:
    case DataType::float64:
      return real_dtype == Dtype::tf32 ? "fp32" : name_of(real_dtype);
    case DataType::boolean:
      return "bool";
    case DataType::int64:
      return "int64";
    case DataType::int32:
      return "int32";
    default:
      return "bytes";
  }
}

std::vector<TranslatedOperation> translate_cast(const SizedStep& sized_step) {
  const std::string_view source_dtype_name =
      cast_target_dtype_name(sized_step.input_value(0).type, sized_step.real_dtype);
  const std::string_view target_dtype_name =
      cast_target_dtype_name(sized_step.output_value().type, sized_step.real_dtype);
  return source_dtype_name == target_dtype_name
             ? translate_view(sized_step)
             : make_single_operation(Kind::cast, target_dtype_name, tensor_parameters(sized_step.output_sizes()));
}

}  // namespace

Translations translate_layout_node(const SizedStep& sized_step) {
  const std::string_view type = sized_step.step.type;
  if (is_type_among(type, {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Split", "Identity"}))
    return translate_view(sized_step);
  if (type == "Slice")
    return has_negative_slice_step(sized_step)
               ? make_single_operation(Kind::reshape, "gather", tensor_parameters(sized_step.output_sizes()))
               : translate_view(sized_step);
  if (type == "Transpose") return translate_transpose(sized_step);
  if (type == "Expand") return translate_expand(sized_step);
  if (type == "Concat") return translate_concatenation(sized_step);
  if (type == "Cast" || type == "CastLike") return translate_cast(sized_step);
  if (type == "Tile")
    return make_single_operation(Kind::reshape, "heads", tensor_parameters(sized_step.output_sizes()));
  if (type == "DepthToSpace" || type == "SpaceToDepth")
    return make_single_operation(Kind::reshape, "transpose", tensor_parameters(sized_step.output_sizes()));
  if (is_type_among(
          type, {"GatherElements", "GatherND", "ScatterElements", "ScatterND", "TensorScatter", "ReverseSequence"})) {
    return make_single_operation(Kind::reshape, "gather", tensor_parameters(sized_step.output_sizes()));
  }
  return std::nullopt;
}

}  // namespace joulemap::predict::onnx
