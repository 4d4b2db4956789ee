// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/keras/layer_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "predict/graph/recurrent.h"

namespace joulemap::predict::keras {
namespace {

const Shape kPlaceholderShape = {1, 1, 1, 1};  // placeholder shape after a failure

// Maps the name of a Keras activation to the form in operation.h; other names stay unchanged, in lower case.
std::string canonical_activation_form(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kActivationSynonyms = {
      {{"swish", "silu"},
       {"hard_swish", "hardswish"},
       {"hard_silu", "hardswish"},
       {"hardsilu", "hardswish"},
       {"leakyrelu", "leaky_relu"},
       {"logsoftmax", "log_softmax"},
       {"exponential", "exp"},
       {"hardsigmoid", "hard_sigmoid"},
       {"softmaxv2", "softmax"}}};
  std::string form(name);
  std::transform(form.begin(), form.end(), form.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  for (const auto& [synonym, canonical_form] : kActivationSynonyms) {
    if (form == synonym) return std::string(canonical_form);
  }
  return form;
}

}  // namespace

LayerCall::LayerCall(LayerTraits layer_traits, CallJson call_text, std::vector<Input> call_inputs, Graph& target_graph)
    : traits(std::move(layer_traits)), call_json(call_text), inputs(std::move(call_inputs)), graph_(target_graph) {
  for (const Input& input : inputs) needs_gradient_ = needs_gradient_ || input.tensor.needs_gradient;
}

void LayerCall::set_failure(std::string_view failure_reason, std::string_view remedy) {
  if (failure_) return;
  failure_ = Error{ErrorCode::malformed,
                   fmt::format("layer {} ({}): {}", traits.layer_path, traits.class_name, failure_reason),
                   std::string(remedy)};
}

const Shape& LayerCall::input_shape(std::size_t input) {
  if (input < inputs.size()) return inputs[input].tensor.sizes;
  set_failure(fmt::format("it has only {} of its input tensors", inputs.size()));
  return kPlaceholderShape;
}

const Input* LayerCall::find_input_named(std::string_view keyword, std::size_t position) const {
  std::size_t unnamed_input_count = 0;
  for (const Input& input : inputs) {
    if (input.keyword == keyword) return &input;
    if (input.keyword.empty() && unnamed_input_count++ == position) return &input;
  }
  return nullptr;
}

std::size_t LayerCall::normalize_axis(std::int64_t axis, std::size_t dimensions) {
  const std::optional<std::size_t> axis_index = normalize_axis_index(axis, dimensions);
  if (!axis_index) set_failure(fmt::format("axis {} is out of range for {} dimensions", axis, dimensions));
  return axis_index.value_or(0);
}

std::int64_t LayerCall::input_dimension(std::int64_t axis) {
  const Shape& sizes = input_shape();
  const std::size_t position = normalize_axis(axis, sizes.size());
  return position < sizes.size() ? sizes[position] : 1;
}

void LayerCall::require_dimension_count(std::size_t min_dimension_count, std::size_t max_dimension_count) {
  const Shape& sizes = input_shape();
  if (sizes.size() >= min_dimension_count && sizes.size() <= max_dimension_count) return;
  set_failure(min_dimension_count == max_dimension_count
                  ? fmt::format("it takes a tensor of {} dimensions, but its input is {}", min_dimension_count,
                                shape_text(sizes))
                  : fmt::format("it takes a tensor of {} or more dimensions, but its input is {}", min_dimension_count,
                                shape_text(sizes)));
  if (inputs.empty()) return;
  inputs.front().tensor.sizes.assign(min_dimension_count, 1);
}

bool LayerCall::is_channels_last(std::string_view default_value) const {
  const std::string format = text_option("data_format");
  return (format.empty() ? default_value : std::string_view(format)) != "channels_first";
}

const DocumentValue* LayerCall::find_option(std::string_view key) const {
  for (const DocumentValue* position : {call_json.config, call_json.keywords}) {
    if (position == nullptr) continue;
    if (const DocumentValue* const value = position->find(key); value != nullptr && !value->is_null()) return value;
  }
  return nullptr;
}

bool LayerCall::boolean_option(std::string_view key, bool default_value) const {
  const DocumentValue* const value = find_option(key);
  return value == nullptr ? default_value : value->boolean().value_or(default_value);
}

std::string LayerCall::text_option(std::string_view key) const {
  const DocumentValue* const value = find_option(key);
  if (value == nullptr) return {};
  if (std::optional<std::string> option_text = value->text()) return *std::move(option_text);
  const std::string class_name = value->text_or_empty("class_name");
  return class_name == "function" ? value->text_or_empty("config") : class_name;
}

std::int64_t LayerCall::check_size_option(std::optional<std::int64_t> value, std::string_view key,
                                          std::int64_t max_size) {
  if (value && *value >= 1 && *value <= max_size) return *value;
  set_failure(value ? fmt::format("its {} is {}, which is not between 1 and {}", key, *value, max_size)
                    : fmt::format("its {} is missing or not an integer", key),
              "save the model again with model.to_json()");
  return 1;
}

std::int64_t LayerCall::required_size_option(std::string_view key) {
  const DocumentValue* const value = find_option(key);
  return check_size_option(value == nullptr ? std::nullopt : value->integer(), key, kMaxElements);
}

std::int64_t LayerCall::size_option_or(std::string_view key, std::int64_t default_value) {
  return find_option(key) == nullptr ? default_value : required_size_option(key);
}

std::vector<std::int64_t> LayerCall::per_dimension_option(std::string_view key, std::size_t dimensions,
                                                          std::int64_t default_value) {
  const DocumentValue* const value = find_option(key);
  if (value == nullptr) return std::vector<std::int64_t>(dimensions, default_value);
  const DocumentValue::Array* const sizes_json = value->array();
  if (sizes_json == nullptr)
    return std::vector<std::int64_t>(dimensions, check_size_option(value->integer(), key, kMaxWindowFactor));
  if (sizes_json->size() != dimensions && sizes_json->size() != 1) {
    set_failure(fmt::format("its {} has {} values for {} dimensions", key, sizes_json->size(), dimensions));
    return std::vector<std::int64_t>(dimensions, 1);
  }
  std::vector<std::int64_t> dimension_sizes;
  for (const DocumentValue& size_json : *sizes_json)
    dimension_sizes.push_back(check_size_option(size_json.integer(), key, kMaxWindowFactor));
  dimension_sizes.resize(dimensions, dimension_sizes.front());
  return dimension_sizes;
}

std::vector<std::int64_t> LayerCall::axes_option(std::string_view key) const {
  std::vector<std::int64_t> axes;
  const DocumentValue* const value = find_option(key);
  if (value == nullptr) return axes;
  if (const std::optional<std::int64_t> axis = value->integer()) axes.push_back(*axis);
  const DocumentValue::Array* axes_json = value->array();
  // The document stores a tuple argument of a TensorFlow function as {"items": [...]}.
  if (const DocumentValue* const items = value->find("items")) axes_json = items->array();
  if (axes_json == nullptr || axes_json->size() > kMaxTensorDimensions) return axes;
  for (const DocumentValue& axis_json : *axes_json) {
    if (const std::optional<std::int64_t> axis = axis_json.integer()) axes.push_back(*axis);
  }
  return axes;
}

Padding LayerCall::padding_option() {
  const std::string name = text_option("padding");
  if (name.empty() || name == "valid" || name == "VALID") return Padding::valid;
  if (name == "same" || name == "SAME") return Padding::same;
  if (name == "causal") return Padding::causal;
  set_failure(fmt::format("its padding is \"{}\", not valid, same or causal", name));
  return Padding::valid;
}

void LayerCall::count_weights(std::initializer_list<std::int64_t> sizes) {
  for (const std::int64_t size : sizes) {
    if (size == 0) continue;  // no bias
    if (size > kMaxElements) set_failure(fmt::format("its weights have more than {} elements", kMaxElements));
    if (traits.has_mixed_precision) {
      const Operation cast_operation{traits.layer_path,
                                     traits.class_name,
                                     Kind::cast,
                                     std::string(name_of(traits.dtype)),
                                     {{"batch", 1}, {"rows", 1}, {"width", std::min(size, kMaxElements)}}};
      graph_.operations.push_back(cast_operation);
      graph_.operations.back().gradient = traits.is_trainable ? NeededGradients::all : NeededGradients::none;
    }
    if (!traits.is_trainable) continue;
    has_trainable_weights_ = true;
    if (!traits.adds_weights_to_graph) continue;
    ++graph_.weight_tensor_count;
    graph_.weight_element_count =
        std::min(graph_.weight_element_count + std::min(size, kSaturatedElementCount), kSaturatedElementCount);
  }
}

void LayerCall::emit_operation(Kind kind, std::string_view operation_form, OperationParameters parameters,
                               std::int64_t count) {
  Operation operation{traits.layer_path,           traits.class_name,     kind,
                      std::string(operation_form), std::move(parameters), traits.dtype};
  operation.count = count;
  operation.gradient = needs_gradient_          ? NeededGradients::all
                       : has_trainable_weights_ ? NeededGradients::weights
                                                : NeededGradients::none;
  needs_gradient_ = needs_gradient_ || has_trainable_weights_;
  has_trainable_weights_ = false;
  graph_.operations.push_back(std::move(operation));
}

std::size_t LayerCall::emit_recurrent(std::string_view operation_form, OperationParameters parameters) {
  emit_operation(Kind::recurrent, operation_form, std::move(parameters));
  const std::optional<std::size_t> stack_operation_index = inputs.empty() ? std::nullopt : inputs.front().tensor.stack;
  if (!stack_operation_index ||
      !is_next_recurrent_layer(graph_.operations[*stack_operation_index], graph_.operations.back()))
    return graph_.operations.size() - 1;
  append_recurrent_layer(graph_.operations[*stack_operation_index], graph_.operations.back());
  graph_.operations.pop_back();
  return *stack_operation_index;
}

void LayerCall::emit_elementwise(Kind kind, std::string_view operation_form, const Shape& sizes, std::int64_t count) {
  emit_operation(kind, operation_form, batch_rows_width_parameters(sizes), count);
}

void LayerCall::emit_activation(std::string_view name, const Shape& sizes, std::int64_t axis) {
  const std::string activation_form = canonical_activation_form(name);
  if (activation_form.empty() || activation_form == "linear") return;
  Shape rotated_sizes = sizes;
  // Softmax runs along one axis, which must become the last dimension, `width`.
  if (!rotated_sizes.empty() && (activation_form == "softmax" || activation_form == "log_softmax")) {
    const auto softmax_axis =
        rotated_sizes.begin() + static_cast<std::ptrdiff_t>(normalize_axis(axis, rotated_sizes.size()));
    std::rotate(softmax_axis, softmax_axis + 1, rotated_sizes.end());
  }
  emit_elementwise(Kind::activation, activation_form, rotated_sizes);
}

void LayerCall::emit_unknown(std::string_view reason, const std::vector<Shape>& outputs, bool has_lower_bound) {
  std::int64_t in = 0;
  std::int64_t out = 0;
  for (const Input& input : inputs) in = std::min(kSaturatedElementCount, in + element_count(input.tensor.sizes));
  for (const Shape& output : outputs) out = std::min(kSaturatedElementCount, out + element_count(output));
  OperationParameters parameters;
  if (has_lower_bound)
    parameters = {{"batch", 1}, {"rows", 1}, {"width", std::max<std::int64_t>({in, out, 1})}, {"in", in}, {"out", out}};
  emit_operation(Kind::unknown, "", std::move(parameters));
  graph_.unknown_operations.push_back({traits.layer_path, traits.class_name, std::string(reason), has_lower_bound});
}

OperationParameters batch_rows_width_parameters(const Shape& shape) {
  if (shape.size() < 2) return {{"batch", 1}, {"rows", 1}, {"width", element_count(shape)}};
  return {{"batch", shape.front()}, {"rows", element_count(shape, 1, shape.size() - 1)}, {"width", shape.back()}};
}

BroadcastForm broadcast_form(const Shape& out, const Shape& left_shape, const Shape& right_shape) {
  const std::int64_t output_element_count = element_count(out);
  const Shape& smaller_shape = element_count(left_shape) < element_count(right_shape) ? left_shape : right_shape;
  const std::int64_t smaller_element_count = element_count(smaller_shape);
  if (smaller_element_count == output_element_count || smaller_element_count == 0 ||
      output_element_count % smaller_element_count != 0)
    return {"same", batch_rows_width_parameters(out)};
  if (smaller_element_count == 1) return {"scalar", batch_rows_width_parameters(out)};
  // Form `last`: a vector along the last dimensions. Otherwise `row`: one value per sample or channel.
  std::size_t leading_ones = 0;
  while (leading_ones < smaller_shape.size() && smaller_shape[leading_ones] == 1) ++leading_ones;
  if (element_count(smaller_shape, leading_ones, smaller_shape.size()) ==
      element_count(out, out.size() - (smaller_shape.size() - leading_ones), out.size())) {
    return {"last",
            {{"batch", 1}, {"rows", output_element_count / smaller_element_count}, {"width", smaller_element_count}}};
  }
  const std::int64_t batch = out.empty() || smaller_element_count % out.front() != 0 ? 1 : out.front();
  return {"row",
          {{"batch", batch},
           {"rows", smaller_element_count / batch},
           {"width", output_element_count / smaller_element_count}}};
}

}  // namespace joulemap::predict::keras
