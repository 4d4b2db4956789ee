// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/keras/keras_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

namespace joulemap::predict::keras {
namespace {

constexpr std::size_t kMaxTensors = 1024;  // limit of output tensors of one call
constexpr std::string_view kSaveAgain = "save the model again with model.to_json()";

const DocumentValue* layers_of(const DocumentValue& model) {
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
std::string function_name(std::string_view name) {
  name.remove_prefix(name.rfind('.') == std::string_view::npos ? 0 : name.rfind('.') + 1);
  std::string plain;
  for (const char letter : name) {
    if (letter != '_') plain += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  return plain;
}

std::optional<PartialShape> stated_input_shape(const DocumentValue& layer) {
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
  const DocumentValue* const layers = layers_of(layer);
  if (layers == nullptr || layers->array()->empty()) return std::nullopt;
  return stated_input_shape(layers->array()->front());
}

// Makes the calls of a Sequential: each layer once, with the output of the previous one.
void make_chain(Model& model, const DocumentValue& text) {
  if (!model.layers.front().is_input) {
    Layer input;
    input.name = "input";
    input.class_name = "InputLayer";
    input.is_input = true;
    input.input_shape = stated_input_shape(text);
    model.layers.insert(model.layers.begin(), std::move(input));
  }
  for (std::size_t i = 1; i < model.layers.size(); ++i) {
    ModelCall call;
    call.arguments.push_back({"", TensorReference{i - 1, 0, 0}, {}});
    model.layers[i].calls = {std::move(call)};
    model.order.emplace_back(i, 0);
    const DocumentValue* const build = model.layers[i].text->find("build_config");
    const std::optional<PartialShape> shape =
        build == nullptr ? std::nullopt : parse_partial_shape(build->find("input_shape"));
    if (shape) model.declared[{i - 1, 0, 0}] = *shape;
  }
  model.inputs = {0};
  model.outputs = {{model.layers.size() - 1, 0, 0}};
}

// Sets used_outputs of each layer. Also numbers calls of nested models from 0: Keras 2 counts their construction as the
// first call, without writing it.
void number_calls_and_tensors(Model& model) {
  std::vector<std::size_t> first(model.layers.size(), SIZE_MAX);
  const auto each_tensor = [&](const auto& visit) {
    for (Layer& layer : model.layers) {
      for (ModelCall& call : layer.calls) {
        for (Argument& argument : call.arguments) {
          if (argument.tensor) visit(*argument.tensor);
        }
      }
    }
    for (TensorReference& output : model.outputs) visit(output);
  };
  each_tensor([&](const TensorReference& tensor) {
    first[tensor.layer] = std::min(first[tensor.layer], tensor.call);
    std::size_t& used = model.layers[tensor.layer].used_outputs;
    used = std::max(used, std::min(tensor.tensor, kMaxTensors) + 1);
  });
  each_tensor([&](TensorReference& tensor) {
    const Layer& layer = model.layers[tensor.layer];
    const bool is_old = !layer.calls.empty() && layer.calls.front().positional == nullptr;
    if (is_old && is_model(*layer.text) && first[tensor.layer] >= 1) --tensor.call;
  });
}

// Topological sort of the calls (Kahn's algorithm), in file order where possible. Fails if there is a cycle.
Status find_order(Model& model) {
  using Call = std::pair<std::size_t, std::size_t>;
  std::map<Call, std::vector<Call>> waiting;  // calls that read a call's outputs
  std::map<Call, std::size_t> missing;
  std::priority_queue<Call, std::vector<Call>, std::greater<>> ready;
  std::size_t count = 0;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    for (std::size_t j = 0; j < model.layers[i].calls.size(); ++j, ++count) {
      std::size_t& open = missing[{i, j}];
      for (const Argument& argument : model.layers[i].calls[j].arguments) {
        if (!argument.tensor || model.layers[argument.tensor->layer].is_input) continue;
        const Layer& from = model.layers[argument.tensor->layer];
        if (argument.tensor->call >= from.calls.size()) {
          return Error{ErrorCode::malformed,
                       fmt::format("layer {} takes a tensor from call {} of layer {}, which has {}",
                                   model.layers[i].name, argument.tensor->call, from.name, from.calls.size()),
                       std::string(kSaveAgain)};
        }
        waiting[{argument.tensor->layer, argument.tensor->call}].emplace_back(i, j);
        ++open;
      }
      if (open == 0) ready.emplace(i, j);
    }
  }
  while (!ready.empty()) {
    const Call call = ready.top();
    ready.pop();
    model.order.push_back(call);
    for (const Call& next : waiting[call]) {
      if (--missing[next] == 0) ready.push(next);
    }
  }
  if (model.order.size() == count) return Done{};
  const auto stuck = std::find_if(missing.begin(), missing.end(), [](const auto& call) { return call.second > 0; });
  return Error{
      ErrorCode::malformed,
      fmt::format("layer {} depends on its own output: the model has a cycle", model.layers[stuck->first.first].name),
      std::string(kSaveAgain)};
}

Status parse_calls(Model& model, const DocumentValue& config) {
  const LayerNames names(model.layers);
  for (Layer& layer : model.layers) {
    const DocumentValue* const nodes = layer.text->find("inbound_nodes");
    if (nodes == nullptr || nodes->array() == nullptr || layer.is_input) continue;
    for (const DocumentValue& node : *nodes->array()) {
      Result<ModelCall> call = parse_call(node, {names, model});
      if (!call) return std::move(call).error().with_context("layer " + layer.name);
      layer.calls.push_back(*std::move(call));
    }
  }
  std::vector<TensorReference> inputs;
  if (const DocumentValue* const named = config.find("input_layers")) collect_tensor_references(*named, names, inputs);
  for (const TensorReference& input : inputs) {
    if (model.layers[input.layer].is_input) model.inputs.push_back(input.layer);
  }
  if (const DocumentValue* const named = config.find("output_layers"))
    collect_tensor_references(*named, names, model.outputs);
  return Done{};
}

}  // namespace

Layer parse_layer(const DocumentValue& text, std::size_t number) {
  Layer layer;
  layer.text = &text;
  layer.config = text.find("config");
  layer.class_name = text.text_or_empty("class_name");
  layer.name = text.text_or_empty("name");
  if (layer.name.empty() && layer.config != nullptr) layer.name = layer.config->text_or_empty("name");
  if (layer.name.empty()) layer.name = fmt::format("{}_{}", layer.class_name, number);
  layer.is_input = layer.class_name == "InputLayer";
  const bool is_tensorflow = layer.class_name == "TFOpLambda" || layer.class_name == "SlicingOpLambda";
  layer.is_function = is_tensorflow || is_keras_function(text.text_or_empty("module"));
  if (is_tensorflow) {
    layer.class_name = function_name(layer.config == nullptr ? "" : layer.config->text_or_empty("function"));
  } else if (layer.is_function) {
    layer.class_name = function_name(layer.class_name);
  }
  if (layer.is_input) layer.input_shape = stated_input_shape(text);
  return layer;
}

bool is_model(const DocumentValue& layer) { return layers_of(layer) != nullptr; }

std::optional<PartialShape> parse_partial_shape(const DocumentValue* value) {
  const DocumentValue::Array* const list = value == nullptr ? nullptr : value->array();
  if (list == nullptr || list->empty() || list->size() > kMaxDimensions) return std::nullopt;
  PartialShape shape;
  for (const DocumentValue& each : *list) {
    if (!each.is_null() && !each.integer()) return std::nullopt;
    shape.push_back(each.integer());
  }
  return shape;
}

Result<Model> parse_model(const DocumentValue& text) {
  const DocumentValue* const layers = layers_of(text);
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
                   std::string(kSaveAgain)};
    }
    model.layers.push_back(parse_layer(layer, model.layers.size()));
  }
  if (model.layers.empty()) {
    return Error{ErrorCode::malformed, fmt::format("the model {} has no layers", model.name), std::string(kSaveAgain)};
  }
  if (config->find("input_layers") == nullptr) {
    make_chain(model, text);
    return model;
  }
  if (Status parsed = parse_calls(model, *config); !parsed) return std::move(parsed).error();
  number_calls_and_tensors(model);
  if (Status ordered = find_order(model); !ordered) return std::move(ordered).error();
  if (model.inputs.empty() || model.outputs.empty()) {
    return Error{ErrorCode::malformed, fmt::format("the model {} has no inputs or no outputs", model.name),
                 std::string(kSaveAgain)};
  }
  return model;
}

}  // namespace joulemap::predict::keras
