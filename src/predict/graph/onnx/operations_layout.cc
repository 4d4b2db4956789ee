// SPDX-License-Identifier: Apache-2.0
//
// Translates nodes that move data or change its layout. As in PyTorch, a transposition is free until an operation needs
// its result contiguous.
#include <algorithm>
#include <array>

#include "predict/graph/onnx/to_operations.h"

namespace joulemap::predict::onnx {
namespace {

bool is_one_of(std::string_view type, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

std::vector<Translation> view(const SizedStep& at) {
  return single_translation(Kind::view, "", tensor_parameters(at.out()));
}

Sizes order_of(const SizedStep& at) {
  Sizes order = integers_attribute(*at.step.node, "perm");
  for (std::size_t i = at.in().size(); order.size() < at.in().size() && i > 0; --i) {
    order.push_back(static_cast<std::int64_t>(i) - 1);
  }
  for (std::int64_t& axis : order) axis += axis < 0 ? static_cast<std::int64_t>(order.size()) : 0;
  return order;
}

// Whether a transposition moves no data: dimensions larger than 1 keep their order.
bool keeps_order(const Sizes& order, const Sizes& from) {
  std::int64_t previous = -1;
  for (const std::int64_t axis : order) {
    if (from[static_cast<std::size_t>(axis)] == 1) continue;
    if (axis < previous) return false;
    previous = axis;
  }
  return true;
}

// Whether a reshape of transposed data needs no copy: every new dimension must lie within old dimensions that are
// contiguous in memory.
bool can_be_viewed(const Sizes& order, const Sizes& from, const Sizes& target) {
  std::size_t next = 0;
  std::size_t at = 0;
  while (at < order.size()) {
    std::int64_t block = from[static_cast<std::size_t>(order[at])];
    std::size_t end = at + 1;
    while (end < order.size() &&
           (order[end] == order[end - 1] + 1 || from[static_cast<std::size_t>(order[end])] == 1)) {
      block *= from[static_cast<std::size_t>(order[end++])];
    }
    std::int64_t covered = 1;
    while (next < target.size() && covered < block) covered *= target[next++];
    if (covered != block) return false;
    at = end;
  }
  return true;
}

// Whether a step that reads transposed data needs it contiguous. Norms, softmax and some reshapes do; products, sums
// and convolutions accept strides.
bool needs_order(const SizedStep& at, const ProgramStep& consumer, const Sizes& order) {
  if (is_one_of(consumer.type, {"Reshape", "Flatten"})) {
    const Value& result = at.program.values[static_cast<std::size_t>(consumer.outputs[0])];
    return !result.sizes || !can_be_viewed(order, at.in(), *result.sizes);
  }
  return is_one_of(consumer.type, {"LayerNormalization", "RMSNormalization", "Softmax", "LogSoftmax", "DepthToSpace"});
}

std::string_view form_of(const Sizes& order) {
  if (order == Sizes{0, 2, 3, 1} || order == Sizes{0, 2, 1}) return "channels-last";
  if (order == Sizes{0, 3, 1, 2}) return "channels-first";
  return order == Sizes{1, 0} ? "transpose" : "heads";
}

std::vector<Translation> transpose(const SizedStep& at) {
  const Sizes order = order_of(at);
  // The output of attention already has this layout.
  const ProgramStep* const before = at.producer(0);
  const bool after_attention = before != nullptr && before->type == "Attention" && order == Sizes{0, 2, 1, 3};
  if (keeps_order(order, at.in()) || after_attention) return view(at);
  for (int consumer : at.output().consumers) {
    const ProgramStep* step = &at.program.steps[static_cast<std::size_t>(consumer)];
    if (step->fused_into != kNone) step = &at.program.steps[static_cast<std::size_t>(step->fused_into)];
    if (needs_order(at, *step, order))
      return single_translation(Kind::reshape, form_of(order), tensor_parameters(at.out()));
  }
  return view(at);
}

// An Expand is free unless a reshape follows: broadcast elements have stride 0, so the reshape copies them.
std::vector<Translation> expand(const SizedStep& at) {
  const bool repeats = elements_of(at.in()) != elements_of(at.out());
  for (const int consumer : at.output().consumers) {
    const ProgramStep& step = at.program.steps[static_cast<std::size_t>(consumer)];
    const bool reshapes = step.fused_into == kNone && is_one_of(step.type, {"Reshape", "Flatten"});
    if (repeats && reshapes) return single_translation(Kind::reshape, "heads", tensor_parameters(at.out()));
  }
  return view(at);
}

// The parameters describe one part: `rows` is the total length along the axis, divided evenly.
std::vector<Translation> concatenate(const SizedStep& at) {
  const Sizes& out = at.out();
  std::int64_t parts = 0;
  for (std::size_t position = 0; position < at.count(); ++position)
    parts += at.has_input(position) && elements_of(at.in(position)) > 0 ? 1 : 0;
  if (parts < 2) return view(at);
  const std::int64_t given = integer_attribute(*at.step.node, "axis", 0);
  const auto axis = static_cast<std::size_t>(given < 0 ? given + static_cast<std::int64_t>(out.size()) : given);
  const std::int64_t length = (out[axis] + parts - 1) / parts;
  return single_translation(Kind::concatenate, "",
                            {{"batch", product_of(out, 0, axis)},
                             {"rows", length},
                             {"width", product_of(out, axis + 1, out.size())},
                             {"parts", parts}});
}

bool goes_backwards(const SizedStep& at) {
  if (!at.has_input(4) || !at.input(4).numbers) return false;
  return std::any_of(at.input(4).numbers->begin(), at.input(4).numbers->end(), [](double step) { return step < 0; });
}

std::string_view name_of_type(DataType type, Dtype real) {
  switch (type) {
    case DataType::float16:
      return "fp16";
    case DataType::bfloat16:
      return "bf16";
    case DataType::float32:
    case DataType::float64:
      return real == Dtype::tf32 ? "fp32" : name_of(real);
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

std::vector<Translation> cast(const SizedStep& at) {
  const std::string_view from = name_of_type(at.input(0).type, at.real_dtype);
  const std::string_view to = name_of_type(at.output().type, at.real_dtype);
  return from == to ? view(at) : single_translation(Kind::cast, to, tensor_parameters(at.out()));
}

}  // namespace

Translations translate_layout(const SizedStep& at) {
  const std::string_view type = at.step.type;
  if (is_one_of(type, {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Split", "Identity"})) return view(at);
  if (type == "Slice")
    return goes_backwards(at) ? single_translation(Kind::reshape, "gather", tensor_parameters(at.out())) : view(at);
  if (type == "Transpose") return transpose(at);
  if (type == "Expand") return expand(at);
  if (type == "Concat") return concatenate(at);
  if (type == "Cast" || type == "CastLike") return cast(at);
  if (type == "Tile") return single_translation(Kind::reshape, "heads", tensor_parameters(at.out()));
  if (type == "DepthToSpace" || type == "SpaceToDepth")
    return single_translation(Kind::reshape, "transpose", tensor_parameters(at.out()));
  if (is_one_of(type,
                {"GatherElements", "GatherND", "ScatterElements", "ScatterND", "TensorScatter", "ReverseSequence"})) {
    return single_translation(Kind::reshape, "gather", tensor_parameters(at.out()));
  }
  return std::nullopt;
}

}  // namespace joulemap::predict::onnx
