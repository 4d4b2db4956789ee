// SPDX-License-Identifier: Apache-2.0
//
// Wrapper layers: TimeDistributed runs the inner layer on every step, Bidirectional runs it once in each direction.
#include <fmt/format.h>

#include "predict/graph/keras/layer_rules.h"
#include "predict/graph/keras/model_walk.h"
#include "predict/graph/recurrent.h"

namespace joulemap::predict::keras {
namespace {

const DocumentValue* parse_wrapped_layer(const Layer& layer, std::string_view key) {
  const DocumentValue* const wrapped_layer_json = layer.config_json == nullptr ? nullptr : layer.config_json->find(key);
  return wrapped_layer_json == nullptr || wrapped_layer_json->text_or_empty("class_name").empty() ? nullptr
                                                                                                  : wrapped_layer_json;
}

Error missing_wrapped_layer_error(const InheritedTraits& inner_traits) {
  return Error{ErrorCode::malformed, fmt::format("layer {}: the wrapped layer is missing", inner_traits.path),
               "save the model again with model.to_json()"};
}

}  // namespace

// The inner layer runs once, with all steps as a larger batch.
Result<std::vector<Tensor>> ModelWalk::visit_time_distributed_layer(const Layer& layer, std::vector<Input> inputs,
                                                                    const InheritedTraits& inner_traits) {
  const DocumentValue* const wrapped_layer_json = parse_wrapped_layer(layer, "layer");
  if (wrapped_layer_json == nullptr) return missing_wrapped_layer_error(inner_traits);
  if (inputs.empty() || inputs.front().tensor.sizes.size() < 3) {
    return Error{ErrorCode::malformed, fmt::format("layer {}: its input is not a batch of steps", inner_traits.path),
                 ""};
  }
  const Shape input_shape = inputs.front().tensor.sizes;
  inputs.resize(1);
  inputs.front().tensor.stack.reset();
  Shape& sizes = inputs.front().tensor.sizes;
  sizes.erase(sizes.begin());
  sizes.front() = input_shape[0] * input_shape[1];
  const Layer parsed_layer = parse_layer(*wrapped_layer_json, 0);
  TensorsOrError out = visit_layer(parsed_layer, {parsed_layer.config_json}, std::move(inputs), inner_traits, {});
  if (!out) return out;
  for (Tensor& tensor : *out) {
    if (tensor.sizes.empty() || tensor.sizes.front() != input_shape[0] * input_shape[1]) continue;
    tensor.sizes.front() = input_shape[1];
    tensor.sizes.insert(tensor.sizes.begin(), input_shape[0]);
  }
  return out;
}

// Merges two equal recurrent operations, from index `begin` on, into a bidirectional one, and that into the operation
// `stack` if it is a further layer of it. Returns the operation's index in the graph; empty if there is no such pair.
std::optional<std::size_t> ModelWalk::merge_bidirectional_passes(std::size_t begin, const std::string& path,
                                                                 std::optional<std::size_t> stack) {
  std::vector<Operation>& operations = graph_.operations;
  std::vector<std::size_t> recurrent_indices;
  for (std::size_t index = begin; index < operations.size(); ++index) {
    if (operations[index].kind == Kind::recurrent) recurrent_indices.push_back(index);
  }
  if (recurrent_indices.size() != 2 || operations[recurrent_indices[0]].form != operations[recurrent_indices[1]].form)
    return std::nullopt;
  if (operations[recurrent_indices[0]].parameters != operations[recurrent_indices[1]].parameters) return std::nullopt;
  Operation& bidirectional_operation = operations[recurrent_indices[0]];
  bidirectional_operation.parameters.set("directions", 2);
  bidirectional_operation.layer = path;
  operations.erase(operations.begin() + static_cast<std::ptrdiff_t>(recurrent_indices[1]));
  if (!stack || !is_next_recurrent_layer(operations[*stack], bidirectional_operation)) return recurrent_indices[0];
  append_recurrent_layer(operations[*stack], bidirectional_operation);
  operations.erase(operations.begin() + static_cast<std::ptrdiff_t>(recurrent_indices[0]));
  return stack;
}

Result<std::vector<Tensor>> ModelWalk::visit_bidirectional_layer(const Layer& layer, const std::vector<Input>& inputs,
                                                                 const InheritedTraits& inner_traits,
                                                                 LayerTraits traits) {
  const DocumentValue* const forward_layer = parse_wrapped_layer(layer, "layer");
  if (forward_layer == nullptr || inputs.empty()) return missing_wrapped_layer_error(inner_traits);
  const DocumentValue* const backward_layer_json = parse_wrapped_layer(layer, "backward_layer");
  Layer parsed_forward_layer = parse_layer(*forward_layer, 0);
  Layer parsed_backward_layer =
      backward_layer_json == nullptr ? parsed_forward_layer : parse_layer(*backward_layer_json, 0);
  if (!parsed_forward_layer.name.starts_with("forward_"))
    parsed_forward_layer.name = "forward_" + parsed_forward_layer.name;
  if (backward_layer_json == nullptr) parsed_backward_layer.name = "backward_" + parsed_backward_layer.name;
  std::vector<Input> direction_inputs(inputs.begin(), inputs.begin() + 1);
  direction_inputs.front()
      .tensor.stack.reset();  // neither direction alone continues a stack; merge_bidirectional_passes() handles both
  const std::size_t initial_operation_count = graph_.operations.size();
  TensorsOrError forward_outputs =
      visit_layer(parsed_forward_layer, {parsed_forward_layer.config_json}, direction_inputs, inner_traits, {});
  if (!forward_outputs) return forward_outputs;
  TensorsOrError backward_outputs =
      visit_layer(parsed_backward_layer, {parsed_backward_layer.config_json}, direction_inputs, inner_traits, {});
  if (!backward_outputs) return backward_outputs;
  const DocumentValue* const mode = layer.config_json->find("merge_mode");
  if (forward_outputs->empty() || backward_outputs->empty() || (mode != nullptr && mode->is_null())) {
    forward_outputs->insert(forward_outputs->end(), backward_outputs->begin(), backward_outputs->end());
    return forward_outputs;
  }
  const std::string merge_mode = mode == nullptr ? "concat" : mode->text().value_or("concat");
  const std::optional<std::size_t> bidirectional_index =
      merge_bidirectional_passes(initial_operation_count, inner_traits.path, inputs.front().tensor.stack);
  if (bidirectional_index && merge_mode == "concat") {  // cuDNN writes both directions side by side, without a copy
    Tensor merged_tensor = forward_outputs->front();
    merged_tensor.sizes.back() += backward_outputs->front().sizes.back();
    if (merged_tensor.sizes.size() == 3) merged_tensor.stack = bidirectional_index;
    forward_outputs->front() = std::move(merged_tensor);
    forward_outputs->insert(forward_outputs->end(), backward_outputs->begin() + 1, backward_outputs->end());
    return forward_outputs;
  }
  LayerCall call(std::move(traits), {}, {{"", forward_outputs->front()}, {"", backward_outputs->front()}}, graph_);
  const LayerRule rule = find_rule(merge_mode == "concat" ? "concatenate"
                                   : merge_mode == "mul"  ? "multiply"
                                   : merge_mode == "ave"  ? "Average"
                                                          : "add");
  TensorsOrError merged_outputs = check_output_shapes(call, rule(call));
  if (!merged_outputs) return merged_outputs;
  merged_outputs->insert(merged_outputs->end(), forward_outputs->begin() + 1, forward_outputs->end());
  merged_outputs->insert(merged_outputs->end(), backward_outputs->begin() + 1, backward_outputs->end());
  return merged_outputs;
}

}  // namespace joulemap::predict::keras
