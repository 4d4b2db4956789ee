// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/keras/model_walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

// Limit of layer calls. The largest networks have some thousands; nested models that call each other repeatedly could
// have any number.
constexpr std::int64_t kMaxLayerCalls = 200'000;

std::string join_layer_path(const std::string& outer_path, const std::string& inner_path) {
  return outer_path.empty() ? inner_path : outer_path + "." + inner_path;
}

Error malformed_layer_error(const std::string& path, std::string_view failure_reason) {
  return Error{ErrorCode::malformed, fmt::format("layer {}: {}", path, failure_reason),
               "save the model again with model.to_json()"};
}

std::string unknown_layer_reason(const Layer& layer, bool is_size_known) {
  std::string reason = layer.class_name == "Lambda" ? "a user-defined function, which the file does not describe"
                       : layer.is_function          ? fmt::format("an unsupported function: {}", layer.class_name)
                                                    : fmt::format("an unsupported layer: {}", layer.class_name);
  if (!is_size_known) reason += "; its output is assumed to be as large as its input";
  return reason;
}

}  // namespace

DtypePolicy parse_dtype_policy(const DocumentValue* dtype, Dtype default_value) {
  std::string name;
  if (dtype != nullptr) {
    name = dtype->text().value_or("");
    if (const DocumentValue* const config = dtype->find("config")) {
      name = config->text_or_empty("name");
      if (name.empty()) name = config->text_or_empty("source_name");
    }
  }
  const bool is_mixed = name.find("mixed_") != std::string::npos;
  if (name.find("bfloat16") != std::string::npos) return {Dtype::bf16, is_mixed};
  if (name.find("float16") != std::string::npos) return {Dtype::fp16, is_mixed};
  return {default_value, false};
}

ModelWalk::ModelWalk(Graph& graph, Dtype dtype, std::int64_t batch, std::optional<std::int64_t> file_batch)
    : graph_(graph), default_dtype_(dtype), batch_size_(batch), batch_size_in_file_(file_batch) {}

Result<const Model*> ModelWalk::parse_cached_model(const DocumentValue& text) {
  const auto cache_entry = parsed_models_.find(&text);
  if (cache_entry != parsed_models_.end()) return &cache_entry->second;
  Result<Model> model = parse_model(text);
  if (!model) return std::move(model).error();
  return &parsed_models_.emplace(&text, *std::move(model)).first->second;
}

Result<std::vector<Tensor>> ModelWalk::visit_model(const DocumentValue& text, const std::vector<Tensor>& inputs,
                                                   const InheritedTraits& inherited) {
  Result<const Model*> parsed_model = parse_cached_model(text);
  if (!parsed_model) return std::move(parsed_model).error();
  const Model& model = **parsed_model;
  if (inputs.size() != model.input_layers.size()) {
    return malformed_layer_error(
        inherited.path.empty() ? model.name : inherited.path,
        fmt::format("it takes {} tensors, but its inputs are {}", model.input_layers.size(), inputs.size()));
  }
  std::map<std::pair<std::size_t, std::size_t>, std::vector<Tensor>> computed;
  for (std::size_t i = 0; i < inputs.size(); ++i) computed[{model.input_layers[i], 0}] = {inputs[i]};
  const auto find = [&](const TensorReference& name) -> const Tensor* {
    const auto output_entry = computed.find({name.layer_index, name.call_index});
    return output_entry == computed.end() || name.output_index >= output_entry->second.size()
               ? nullptr
               : &output_entry->second[name.output_index];
  };
  const auto missing_tensor_error = [&](const TensorReference& name) {
    return malformed_layer_error(join_layer_path(inherited.path, model.layers[name.layer_index].name),
                                 fmt::format("its output {} is used but does not exist", name.output_index));
  };
  for (const auto& [number, call_number] : model.call_order) {
    const Layer& layer = model.layers[number];
    const ModelCall& call = layer.calls[call_number];
    std::vector<Input> call_inputs;
    for (const Argument& argument : call.arguments) {
      const Tensor* const tensor = argument.tensor ? find(*argument.tensor) : nullptr;
      if (argument.tensor && tensor == nullptr) return missing_tensor_error(*argument.tensor);
      call_inputs.push_back(
          {argument.keyword, tensor == nullptr ? Tensor{argument.constant, default_dtype_} : *tensor});
    }
    TensorsOrError out = visit_layer(layer, {layer.config_json, call.positional, call.keywords}, std::move(call_inputs),
                                     inherited, declared_shapes(model, number, call_number));
    if (!out) return std::move(out).error();
    computed[{number, call_number}] = *std::move(out);
  }
  std::vector<Tensor> outputs;
  for (const TensorReference& output : model.output_tensors) {
    const Tensor* const tensor = find(output);
    if (tensor == nullptr) return missing_tensor_error(output);
    outputs.push_back(*tensor);
  }
  return outputs;
}

ModelWalk::DeclaredShapes ModelWalk::declared_shapes(const Model& model, std::size_t layer, std::size_t call) const {
  DeclaredShapes declared{{}, true};
  for (std::size_t tensor = 0; tensor < model.layers[layer].used_output_count; ++tensor) {
    const auto shape_entry = model.declared_shapes.find({layer, call, tensor});
    declared.shapes.emplace_back();
    if (shape_entry == model.declared_shapes.end()) {
      declared.is_complete = false;
      continue;
    }
    for (std::size_t i = 0; i < shape_entry->second.size(); ++i) {
      std::optional<std::int64_t> size = shape_entry->second[i];
      if (i == 0 && (!size || size == batch_size_in_file_)) size = batch_size_;
      if (!size || *size < 1) declared.is_complete = false;
      declared.shapes.back().push_back(size.value_or(1));
    }
  }
  return declared;
}

LayerTraits ModelWalk::compute_layer_traits(const Layer& layer, const std::vector<Input>& inputs,
                                            const InheritedTraits& inherited, const CallJson& call_json) const {
  LayerTraits traits;
  traits.layer_path = join_layer_path(inherited.path, layer.name);
  traits.class_name = layer.class_name;
  const bool trains = layer.config_json == nullptr || layer.config_json->boolean("trainable").value_or(true);
  traits.is_trainable = inherited.is_trainable && trains;
  traits.runs_in_inference_mode = inherited.is_inference;
  // Keras 3 writes the default of `training` for every layer, which a run overrides. For models, and in Keras 2, the
  // value is an explicit choice.
  const bool is_mode_explicit = call_json.positional == nullptr || is_model(*layer.layer_json);
  if (is_mode_explicit && call_json.keywords != nullptr && call_json.keywords->boolean("training") == false) {
    traits.runs_in_inference_mode = true;
  }
  const DtypePolicy policy =
      parse_dtype_policy(layer.config_json == nullptr ? nullptr : layer.config_json->find("dtype"), default_dtype_);
  traits.dtype = policy.compute_dtype;
  traits.has_mixed_precision = policy.has_mixed_precision;
  if (layer.is_function) {  // a function computes in the type of its input
    const auto floating_point_input =
        std::find_if(inputs.begin(), inputs.end(), [](const Input& input) { return input.tensor.is_floating_point; });
    traits.dtype = floating_point_input == inputs.end() ? default_dtype_ : floating_point_input->tensor.dtype;
    traits.has_mixed_precision = false;
  }
  return traits;
}

Result<std::vector<Tensor>> ModelWalk::visit_layer(const Layer& layer, const CallJson& call_json,
                                                   std::vector<Input> inputs, const InheritedTraits& inherited,
                                                   const DeclaredShapes& declared) {
  if (++call_count_ > kMaxLayerCalls) {
    return Error{ErrorCode::unsupported, fmt::format("the model has more than {} calls of layers", kMaxLayerCalls), ""};
  }
  LayerTraits traits = compute_layer_traits(layer, inputs, inherited, call_json);
  if (inputs.empty()) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("layer {} ({}): the file does not list its input tensors", traits.layer_path, layer.class_name),
        "save the model with Keras 3, or export it to ONNX"};
  }
  const InheritedTraits inner_traits{traits.layer_path, traits.is_trainable, traits.runs_in_inference_mode};
  if (is_model(*layer.layer_json)) {
    std::vector<Tensor> tensors;
    tensors.reserve(inputs.size());
    for (Input& input : inputs) tensors.push_back(std::move(input.tensor));
    return visit_model(*layer.layer_json, tensors, inner_traits);
  }
  if (layer.class_name == "TimeDistributed")
    return visit_time_distributed_layer(layer, std::move(inputs), inner_traits);
  if (layer.class_name == "Bidirectional")
    return visit_bidirectional_layer(layer, inputs, inner_traits, std::move(traits));
  traits.adds_weights_to_graph = layers_with_counted_weights_.insert(traits.layer_path).second;
  LayerCall call(std::move(traits), call_json, std::move(inputs), graph_);
  if (!layer.is_function) cast_inputs(call);
  return apply_layer_rule(call, declared, layer);
}

// Casts inputs to the layer's computing type, as Keras does at the start of a call.
void ModelWalk::cast_inputs(LayerCall& call) const {
  for (Input& input : call.inputs) {
    if (!input.tensor.is_floating_point || input.tensor.dtype == call.traits.dtype) continue;
    Operation cast_operation{call.traits.layer_path,
                             call.traits.class_name,
                             Kind::cast,
                             std::string(name_of(call.traits.dtype)),
                             batch_rows_width_parameters(input.tensor.sizes),
                             input.tensor.dtype};
    cast_operation.gradient = input.tensor.needs_gradient ? NeededGradients::all : NeededGradients::none;
    graph_.operations.push_back(std::move(cast_operation));
    input.tensor.dtype = call.traits.dtype;
  }
}

Result<std::vector<Tensor>> ModelWalk::apply_layer_rule(LayerCall& call, const DeclaredShapes& declared,
                                                        const Layer& layer) {
  const LayerRule rule = layer.is_input ? nullptr : find_rule(layer.class_name);
  if (rule != nullptr) return check_output_shapes(call, rule(call));
  std::vector<Shape> shapes = declared.shapes;
  if (!declared.is_complete) shapes.assign(std::max<std::size_t>(1, declared.shapes.size()), call.input_shape());
  // A custom layer may have trainable weights, which the file does not list.
  if (call.traits.is_trainable && !layer.is_function && layer.class_name != "Lambda") call.set_needs_gradient(true);
  call.emit_unknown(unknown_layer_reason(layer, declared.is_complete), shapes, declared.is_complete);
  return check_output_shapes(call, shapes);
}

namespace {

// Index of the recurrent operation that the output continues. Dropout between two recurrent layers does not separate
// them: PyTorch's recurrent call includes it.
std::optional<std::size_t> recurrent_stack_of_inputs(const LayerCall& call) {
  const bool is_dropout = call.traits.class_name == "Dropout" || call.traits.class_name == "SpatialDropout1D";
  return is_dropout && !call.inputs.empty() ? call.inputs.front().tensor.stack : call.recurrent_stack;
}

}  // namespace

Result<std::vector<Tensor>> ModelWalk::check_output_shapes(const LayerCall& call,
                                                           const std::vector<Shape>& shapes) const {
  if (call.failure()) return *call.failure();
  bool is_floating_point = call.traits.class_name == "cast";
  for (const Input& input : call.inputs) is_floating_point = is_floating_point || input.tensor.is_floating_point;
  if (call.traits.class_name == "Embedding") is_floating_point = true;
  std::vector<Tensor> tensors;
  for (const Shape& shape : shapes) {
    const bool is_positive = std::all_of(shape.begin(), shape.end(), [](std::int64_t size) { return size >= 1; });
    if (!is_positive || element_count(shape) > kMaxElements || shape.size() > kMaxTensorDimensions) {
      return Error{ErrorCode::malformed,
                   fmt::format("layer {} ({}): its output would be a tensor of {}", call.traits.layer_path,
                               call.traits.class_name, shape_text(shape)),
                   is_positive ? "use a smaller --batch or --input" : "use a larger --input"};
    }
    tensors.push_back({shape, call.traits.dtype, call.needs_gradient(), is_floating_point});
    if (shape.size() == 3 && tensors.size() == 1) tensors.back().stack = recurrent_stack_of_inputs(call);
  }
  return tensors;
}

}  // namespace joulemap::predict::keras
