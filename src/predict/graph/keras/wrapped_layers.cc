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
  const DocumentValue* const inner = layer.config_json == nullptr ? nullptr : layer.config_json->find(key);
  return inner == nullptr || inner->text_or_empty("class_name").empty() ? nullptr : inner;
}

Error missing_wrapped_layer_error(const InheritedTraits& inside) {
  return Error{ErrorCode::malformed, fmt::format("layer {}: the wrapped layer is missing", inside.path),
               "save the model again with model.to_json()"};
}

}  // namespace

// The inner layer runs once, with all steps as a larger batch.
Result<std::vector<Tensor>> ModelWalk::visit_time_distributed_layer(const Layer& layer, std::vector<Input> inputs,
                                                                    const InheritedTraits& inside) {
  const DocumentValue* const inner = parse_wrapped_layer(layer, "layer");
  if (inner == nullptr) return missing_wrapped_layer_error(inside);
  if (inputs.empty() || inputs.front().tensor.sizes.size() < 3) {
    return Error{ErrorCode::malformed, fmt::format("layer {}: its input is not a batch of steps", inside.path), ""};
  }
  const Shape whole = inputs.front().tensor.sizes;
  inputs.resize(1);
  inputs.front().tensor.stack.reset();
  Shape& sizes = inputs.front().tensor.sizes;
  sizes.erase(sizes.begin());
  sizes.front() = whole[0] * whole[1];
  const Layer parsed_layer = parse_layer(*inner, 0);
  TensorsOrError out = visit_layer(parsed_layer, {parsed_layer.config_json}, std::move(inputs), inside, {});
  if (!out) return out;
  for (Tensor& tensor : *out) {
    if (tensor.sizes.empty() || tensor.sizes.front() != whole[0] * whole[1]) continue;
    tensor.sizes.front() = whole[1];
    tensor.sizes.insert(tensor.sizes.begin(), whole[0]);
  }
  return out;
}

// Merges two equal recurrent operations, from index `begin` on, into a bidirectional one, and that into the operation
// `stack` if it is a further layer of it. Returns the operation's index in the graph; empty if there is no such pair.
std::optional<std::size_t> ModelWalk::merge_bidirectional_passes(std::size_t begin, const std::string& path,
                                                                 std::optional<std::size_t> stack) {
  std::vector<Operation>& all = graph_.operations;
  std::vector<std::size_t> found;
  for (std::size_t index = begin; index < all.size(); ++index) {
    if (all[index].kind == Kind::recurrent) found.push_back(index);
  }
  if (found.size() != 2 || all[found[0]].form != all[found[1]].form) return std::nullopt;
  if (all[found[0]].parameters != all[found[1]].parameters) return std::nullopt;
  Operation& both = all[found[0]];
  both.parameters.set("directions", 2);
  both.layer = path;
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(found[1]));
  if (!stack || !is_next_recurrent_layer(all[*stack], both)) return found[0];
  append_recurrent_layer(all[*stack], both);
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(found[0]));
  return stack;
}

Result<std::vector<Tensor>> ModelWalk::visit_bidirectional_layer(const Layer& layer, const std::vector<Input>& inputs,
                                                                 const InheritedTraits& inside, LayerTraits traits) {
  const DocumentValue* const forward_layer = parse_wrapped_layer(layer, "layer");
  if (forward_layer == nullptr || inputs.empty()) return missing_wrapped_layer_error(inside);
  const DocumentValue* const back = parse_wrapped_layer(layer, "backward_layer");
  Layer one = parse_layer(*forward_layer, 0);
  Layer other = back == nullptr ? one : parse_layer(*back, 0);
  if (!one.name.starts_with("forward_")) one.name = "forward_" + one.name;
  if (back == nullptr) other.name = "backward_" + other.name;
  std::vector<Input> first(inputs.begin(), inputs.begin() + 1);
  first.front()
      .tensor.stack.reset();  // neither direction alone continues a stack; merge_bidirectional_passes() handles both
  const std::size_t before = graph_.operations.size();
  TensorsOrError there = visit_layer(one, {one.config_json}, first, inside, {});
  if (!there) return there;
  TensorsOrError again = visit_layer(other, {other.config_json}, first, inside, {});
  if (!again) return again;
  const DocumentValue* const mode = layer.config_json->find("merge_mode");
  if (there->empty() || again->empty() || (mode != nullptr && mode->is_null())) {
    there->insert(there->end(), again->begin(), again->end());
    return there;
  }
  const std::string how = mode == nullptr ? "concat" : mode->text().value_or("concat");
  const std::optional<std::size_t> both = merge_bidirectional_passes(before, inside.path, inputs.front().tensor.stack);
  if (both && how == "concat") {  // cuDNN writes both directions side by side, without a copy
    Tensor merged = there->front();
    merged.sizes.back() += again->front().sizes.back();
    if (merged.sizes.size() == 3) merged.stack = both;
    there->front() = std::move(merged);
    there->insert(there->end(), again->begin() + 1, again->end());
    return there;
  }
  LayerCall call(std::move(traits), {}, {{"", there->front()}, {"", again->front()}}, graph_);
  const LayerRule rule = find_rule(how == "concat" ? "concatenate"
                                   : how == "mul"  ? "multiply"
                                   : how == "ave"  ? "Average"
                                                   : "add");
  TensorsOrError merged = check_output_shapes(call, rule(call));
  if (!merged) return merged;
  merged->insert(merged->end(), there->begin() + 1, there->end());
  merged->insert(merged->end(), again->begin() + 1, again->end());
  return merged;
}

}  // namespace joulemap::predict::keras
