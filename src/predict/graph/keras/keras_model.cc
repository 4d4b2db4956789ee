// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/keras/keras_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

namespace joulemap::predict::keras {
namespace {

constexpr std::size_t kMaxOutputTensorsPerCall = 1024;  // limit of output tensors of one call
constexpr std::string_view kSaveModelAgainRemedy = "save the model again with model.to_json()";

const DocumentValue* find_layer_list(const DocumentValue& model) {
  const DocumentValue* const config = model.find("config");
  if (config == nullptr) return nullptr;
  if (config->array() != nullptr) return config;  // format of a Sequential in the first versions of Keras
  const DocumentValue* const layers = config->find("layers");
  return layers != nullptr && layers->array() != nullptr ? layers : nullptr;
}

bool is_keras_function(std::string_view module) {
  return module.starts_with("keras") && module.find(".ops") != std::string_view::npos;
}

// Normalizes the name of a function: "math.reduce_mean" becomes "reducemean", "Mean" of keras.ops becomes "mean".
std::string keras_function_name(std::string_view name) {
  name.remove_prefix(name.rfind('.') == std::string_view::npos ? 0 : name.rfind('.') + 1);
  std::string canonical_name;
  for (const char letter : name) {
    if (letter != '_')
      canonical_name += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  return canonical_name;
}

std::optional<PartialShape> parse_stated_input_shape(const DocumentValue& layer) {
  const DocumentValue* const config = layer.find("config");
  if (config != nullptr) {
    for (const std::string_view key : {"batch_shape", "batch_input_shape", "build_input_shape"}) {
      if (std::optional<PartialShape> shape = parse_partial_shape(config->find(key))) return shape;
    }
  }
  const DocumentValue* const build = layer.find("build_config");
  if (build != nullptr) {
    if (std::optional<PartialShape> shape = parse_partial_shape(build->find("input_shape"))) return shape;
  }
  const DocumentValue* const layers = find_layer_list(layer);
  if (layers == nullptr || layers->array()->empty()) return std::nullopt;
  return parse_stated_input_shape(layers->array()->front());
}

// Makes the calls of a Sequential: each layer once, with the output of the previous one.
void connect_layers_in_sequence(Model& model, const DocumentValue& text) {
  if (!model.layers.front().is_input) {
    Layer input;
    input.name = "input";
    input.class_name = "InputLayer";
    input.is_input = true;
    input.input_shape = parse_stated_input_shape(text);
    model.layers.insert(model.layers.begin(), std::move(input));
  }
  for (std::size_t i = 1; i < model.layers.size(); ++i) {
    ModelCall call;
    call.arguments.push_back({"", TensorReference{i - 1, 0, 0}, {}});
    model.layers[i].calls = {std::move(call)};
    model.call_order.emplace_back(i, 0);
    const DocumentValue* const build = model.layers[i].layer_json->find("build_config");
    const std::optional<PartialShape> shape =
        build == nullptr ? std::nullopt : parse_partial_shape(build->find("input_shape"));
    if (shape) model.declared_shapes[{i - 1, 0, 0}] = *shape;
  }
  model.input_layers = {0};
  model.output_tensors = {{model.layers.size() - 1, 0, 0}};
}

// Sets used_output_count of each layer. Also numbers calls of nested models from 0: Keras 2 counts their construction
// as the first call, without writing it.
void count_outputs_and_renumber_calls(Model& model) {
  std::vector<std::size_t> first_call_indices(model.layers.size(), SIZE_MAX);
  const auto for_each_tensor = [&](const auto& visit_tensor) {
    for (Layer& layer : model.layers) {
      for (ModelCall& call : layer.calls) {
        for (Argument& argument : call.arguments) {
          if (argument.tensor) visit_tensor(*argument.tensor);
        }
      }
    }
    for (TensorReference& output : model.output_tensors) visit_tensor(output);
  };
  for_each_tensor([&](const TensorReference& tensor) {
    first_call_indices[tensor.layer_index] = std::min(first_call_indices[tensor.layer_index], tensor.call_index);
    std::size_t& used_output_count = model.layers[tensor.layer_index].used_output_count;
    used_output_count = std::max(used_output_count, std::min(tensor.output_index, kMaxOutputTensorsPerCall) + 1);
  });
  for_each_tensor([&](TensorReference& tensor) {
    const Layer& layer = model.layers[tensor.layer_index];
    const bool is_keras2_layer = !layer.calls.empty() && layer.calls.front().positional == nullptr;
    if (is_keras2_layer && is_model(*layer.layer_json) && first_call_indices[tensor.layer_index] >= 1)
      --tensor.call_index;
  });
}

// Topological sort of the calls (Kahn's algorithm), in file order where possible. Fails if there is a cycle.
Status sort_layers_by_dependency(Model& model) {
  using CallIndex = std::pair<std::size_t, std::size_t>;
  std::map<CallIndex, std::vector<CallIndex>> waiting;  // calls that read a call's outputs
  std::map<CallIndex, std::size_t> missing_inputs_by_call;
  std::priority_queue<CallIndex, std::vector<CallIndex>, std::greater<>> ready_calls;
  std::size_t count = 0;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    for (std::size_t j = 0; j < model.layers[i].calls.size(); ++j, ++count) {
      std::size_t& missing_input_count = missing_inputs_by_call[{i, j}];
      for (const Argument& argument : model.layers[i].calls[j].arguments) {
        if (!argument.tensor || model.layers[argument.tensor->layer_index].is_input) continue;
        const Layer& source_layer = model.layers[argument.tensor->layer_index];
        if (argument.tensor->call_index >= source_layer.calls.size()) {
          return Error{
              ErrorCode::malformed,
              fmt::format("layer {} takes a tensor from call {} of layer {}, which has {}", model.layers[i].name,
                          argument.tensor->call_index, source_layer.name, source_layer.calls.size()),
              std::string(kSaveModelAgainRemedy)};
        }
        waiting[{argument.tensor->layer_index, argument.tensor->call_index}].emplace_back(i, j);
        ++missing_input_count;
      }
      if (missing_input_count == 0) ready_calls.emplace(i, j);
    }
  }
  while (!ready_calls.empty()) {
    const CallIndex call = ready_calls.top();
    ready_calls.pop();
    model.call_order.push_back(call);
    for (const CallIndex& waiting_call : waiting[call]) {
      if (--missing_inputs_by_call[waiting_call] == 0) ready_calls.push(waiting_call);
    }
  }
  if (model.call_order.size() == count) return Done{};
  const auto cyclic_call = std::find_if(missing_inputs_by_call.begin(), missing_inputs_by_call.end(),
                                        [](const auto& call) { return call.second > 0; });
  return Error{ErrorCode::malformed,
               fmt::format("layer {} depends on its own output: the model has a cycle",
                           model.layers[cyclic_call->first.first].name),
               std::string(kSaveModelAgainRemedy)};
}

Status parse_inbound_calls(Model& model, const DocumentValue& config) {
  const LayerNameIndex names(model.layers);
  for (Layer& layer : model.layers) {
    const DocumentValue* const nodes = layer.layer_json->find("inbound_nodes");
    if (nodes == nullptr || nodes->array() == nullptr || layer.is_input) continue;
    for (const DocumentValue& node : *nodes->array()) {
      Result<ModelCall> call = parse_call(node, {names, model});
      if (!call) return std::move(call).error().with_context("layer " + layer.name);
      layer.calls.push_back(*std::move(call));
    }
  }
  std::vector<TensorReference> inputs;
  if (const DocumentValue* const input_layers_json = config.find("input_layers"))
    collect_tensor_references(*input_layers_json, names, inputs);
  for (const TensorReference& input : inputs) {
    if (model.layers[input.layer_index].is_input) model.input_layers.push_back(input.layer_index);
  }
  if (const DocumentValue* const output_layers_json = config.find("output_layers"))
    collect_tensor_references(*output_layers_json, names, model.output_tensors);
  return Done{};
}

}  // namespace

Layer parse_layer(const DocumentValue& text, std::size_t number) {
  Layer layer;
  layer.layer_json = &text;
  layer.config_json = text.find("config");
  layer.class_name = text.text_or_empty("class_name");
  layer.name = text.text_or_empty("name");
  if (layer.name.empty() && layer.config_json != nullptr) layer.name = layer.config_json->text_or_empty("name");
  if (layer.name.empty()) layer.name = fmt::format("{}_{}", layer.class_name, number);
  layer.is_input = layer.class_name == "InputLayer";
  const bool is_tensorflow = layer.class_name == "TFOpLambda" || layer.class_name == "SlicingOpLambda";
  layer.is_function = is_tensorflow || is_keras_function(text.text_or_empty("module"));
  if (is_tensorflow) {
    layer.class_name =
        keras_function_name(layer.config_json == nullptr ? "" : layer.config_json->text_or_empty("function"));
  } else if (layer.is_function) {
    layer.class_name = keras_function_name(layer.class_name);
  }
  if (layer.is_input) layer.input_shape = parse_stated_input_shape(text);
  return layer;
}

bool is_model(const DocumentValue& layer) { return find_layer_list(layer) != nullptr; }

std::optional<PartialShape> parse_partial_shape(const DocumentValue* value) {
  const DocumentValue::Array* const sizes_json = value == nullptr ? nullptr : value->array();
  if (sizes_json == nullptr || sizes_json->empty() || sizes_json->size() > kMaxTensorDimensions) return std::nullopt;
  PartialShape shape;
  for (const DocumentValue& size_json : *sizes_json) {
    if (!size_json.is_null() && !size_json.integer()) return std::nullopt;
    shape.push_back(size_json.integer());
  }
  return shape;
}

Result<Model> parse_model(const DocumentValue& text) {
  const DocumentValue* const layers = find_layer_list(text);
  if (layers == nullptr) {
    const std::string class_name = text.text_or_empty("class_name");
    return Error{ErrorCode::unsupported,
                 class_name.empty() ? "not a Keras model: it contains no layers"
                                    : fmt::format("the model is a {}, which does not list its layers", class_name),
                 "write model.to_json() of a Sequential or Functional model, or export to ONNX with model.export(...)"};
  }
  Model model;
  const DocumentValue* const config = text.find("config");
  model.name = config->text_or_empty("name");
  for (const DocumentValue& layer : *layers->array()) {
    if (layer.text_or_empty("class_name").empty()) {
      return Error{ErrorCode::malformed,
                   fmt::format("layer {} of {} has no class_name", model.layers.size(), model.name),
                   std::string(kSaveModelAgainRemedy)};
    }
    model.layers.push_back(parse_layer(layer, model.layers.size()));
  }
  if (model.layers.empty()) {
    return Error{ErrorCode::malformed, fmt::format("the model {} has no layers", model.name),
                 std::string(kSaveModelAgainRemedy)};
  }
  if (config->find("input_layers") == nullptr) {
    connect_layers_in_sequence(model, text);
    return model;
  }
  if (Status parse_status = parse_inbound_calls(model, *config); !parse_status) return std::move(parse_status).error();
  count_outputs_and_renumber_calls(model);
  if (Status sort_status = sort_layers_by_dependency(model); !sort_status) return std::move(sort_status).error();
  if (model.input_layers.empty() || model.output_tensors.empty()) {
    return Error{ErrorCode::malformed, fmt::format("the model {} has no inputs or no outputs", model.name),
                 std::string(kSaveModelAgainRemedy)};
  }
  return model;
}

}  // namespace joulemap::predict::keras
