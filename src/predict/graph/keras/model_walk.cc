// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/keras/model_walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

// Limit of layer calls. The largest networks have some thousands; nested models that call each other repeatedly could
// have any number.
constexpr std::int64_t kMaxCalls = 200'000;

std::string joined(const std::string& outer, const std::string& inner) {
  return outer.empty() ? inner : outer + "." + inner;
}

Error wrong(const std::string& path, std::string_view what) {
  return Error{ErrorCode::malformed, fmt::format("layer {}: {}", path, what),
               "save the model again with model.to_json()"};
}

std::string unknown_reason(const Layer& layer, bool is_size_known) {
  std::string reason = layer.class_name == "Lambda" ? "a user-defined function, which the file does not describe"
                       : layer.is_function          ? fmt::format("an unsupported function: {}", layer.class_name)
                                                    : fmt::format("an unsupported layer: {}", layer.class_name);
  if (!is_size_known) reason += "; its output is assumed to be as large as its input";
  return reason;
}

}  // namespace

DtypePolicy parse_dtype_policy(const DocumentValue* dtype, Dtype otherwise) {
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
  return {otherwise, false};
}

ModelWalk::ModelWalk(Graph& graph, Dtype dtype, std::int64_t batch, std::optional<std::int64_t> file_batch)
    : graph_(graph), dtype_(dtype), batch_(batch), file_batch_(file_batch) {}

Result<const Model*> ModelWalk::parsed(const DocumentValue& text) {
  const auto found = models_.find(&text);
  if (found != models_.end()) return &found->second;
  Result<Model> model = parse_model(text);
  if (!model) return std::move(model).error();
  return &models_.emplace(&text, *std::move(model)).first->second;
}

Result<std::vector<Tensor>> ModelWalk::run_model(const DocumentValue& text, const std::vector<Tensor>& inputs,
                                                 const InheritedTraits& inherited) {
  Result<const Model*> parsed_model = parsed(text);
  if (!parsed_model) return std::move(parsed_model).error();
  const Model& model = **parsed_model;
  if (inputs.size() != model.inputs.size()) {
    return wrong(inherited.path.empty() ? model.name : inherited.path,
                 fmt::format("it takes {} tensors, but its inputs are {}", model.inputs.size(), inputs.size()));
  }
  std::map<std::pair<std::size_t, std::size_t>, std::vector<Tensor>> computed;
  for (std::size_t i = 0; i < inputs.size(); ++i) computed[{model.inputs[i], 0}] = {inputs[i]};
  const auto find = [&](const TensorReference& name) -> const Tensor* {
    const auto found = computed.find({name.layer, name.call});
    return found == computed.end() || name.tensor >= found->second.size() ? nullptr : &found->second[name.tensor];
  };
  const auto not_there = [&](const TensorReference& name) {
    return wrong(joined(inherited.path, model.layers[name.layer].name),
                 fmt::format("its output {} is used but does not exist", name.tensor));
  };
  for (const auto& [number, call_number] : model.order) {
    const Layer& layer = model.layers[number];
    const ModelCall& call = layer.calls[call_number];
    std::vector<Input> given;
    for (const Argument& argument : call.arguments) {
      const Tensor* const tensor = argument.tensor ? find(*argument.tensor) : nullptr;
      if (argument.tensor && tensor == nullptr) return not_there(*argument.tensor);
      given.push_back({argument.keyword, tensor == nullptr ? Tensor{argument.constant, dtype_} : *tensor});
    }
    Tensors out = run_layer(layer, {layer.config, call.positional, call.keywords}, std::move(given), inherited,
                            declared_shapes(model, number, call_number));
    if (!out) return std::move(out).error();
    computed[{number, call_number}] = *std::move(out);
  }
  std::vector<Tensor> outputs;
  for (const TensorReference& output : model.outputs) {
    const Tensor* const tensor = find(output);
    if (tensor == nullptr) return not_there(output);
    outputs.push_back(*tensor);
  }
  return outputs;
}

ModelWalk::DeclaredShapes ModelWalk::declared_shapes(const Model& model, std::size_t layer, std::size_t call) const {
  DeclaredShapes declared{{}, true};
  for (std::size_t tensor = 0; tensor < model.layers[layer].used_outputs; ++tensor) {
    const auto found = model.declared.find({layer, call, tensor});
    declared.shapes.emplace_back();
    if (found == model.declared.end()) {
      declared.is_complete = false;
      continue;
    }
    for (std::size_t i = 0; i < found->second.size(); ++i) {
      std::optional<std::int64_t> size = found->second[i];
      if (i == 0 && (!size || size == file_batch_)) size = batch_;
      if (!size || *size < 1) declared.is_complete = false;
      declared.shapes.back().push_back(size.value_or(1));
    }
  }
  return declared;
}

LayerTraits ModelWalk::traits_of(const Layer& layer, const std::vector<Input>& inputs, const InheritedTraits& inherited,
                                 const CallJson& written) const {
  LayerTraits traits;
  traits.path = joined(inherited.path, layer.name);
  traits.class_name = layer.class_name;
  const bool trains = layer.config == nullptr || layer.config->boolean("trainable").value_or(true);
  traits.is_trainable = inherited.is_trainable && trains;
  traits.is_inference = inherited.is_inference;
  // Keras 3 writes the default of `training` for every layer, which a run overrides. For models, and in Keras 2, the
  // value is an explicit choice.
  const bool is_chosen = written.positional == nullptr || is_model(*layer.text);
  if (is_chosen && written.keywords != nullptr && written.keywords->boolean("training") == false) {
    traits.is_inference = true;
  }
  const DtypePolicy policy =
      parse_dtype_policy(layer.config == nullptr ? nullptr : layer.config->find("dtype"), dtype_);
  traits.dtype = policy.dtype;
  traits.is_mixed = policy.is_mixed;
  if (layer.is_function) {  // a function computes in the type of its input
    const auto first =
        std::find_if(inputs.begin(), inputs.end(), [](const Input& input) { return input.tensor.is_floating_point; });
    traits.dtype = first == inputs.end() ? dtype_ : first->tensor.dtype;
    traits.is_mixed = false;
  }
  return traits;
}

Result<std::vector<Tensor>> ModelWalk::run_layer(const Layer& layer, const CallJson& written, std::vector<Input> inputs,
                                                 const InheritedTraits& inherited, const DeclaredShapes& declared) {
  if (++calls_ > kMaxCalls) {
    return Error{ErrorCode::unsupported, fmt::format("the model has more than {} calls of layers", kMaxCalls), ""};
  }
  LayerTraits traits = traits_of(layer, inputs, inherited, written);
  if (inputs.empty()) {
    return Error{ErrorCode::unsupported,
                 fmt::format("layer {} ({}): the file does not list its input tensors", traits.path, layer.class_name),
                 "save the model with Keras 3, or export it to ONNX"};
  }
  const InheritedTraits inside{traits.path, traits.is_trainable, traits.is_inference};
  if (is_model(*layer.text)) {
    std::vector<Tensor> tensors;
    tensors.reserve(inputs.size());
    for (Input& input : inputs) tensors.push_back(std::move(input.tensor));
    return run_model(*layer.text, tensors, inside);
  }
  if (layer.class_name == "TimeDistributed") return run_time_distributed(layer, std::move(inputs), inside);
  if (layer.class_name == "Bidirectional") return run_bidirectional(layer, inputs, inside, std::move(traits));
  traits.counts_weights = layers_with_counted_weights_.insert(traits.path).second;
  LayerCall call(std::move(traits), written, std::move(inputs), graph_);
  if (!layer.is_function) cast_inputs(call);
  return run_rule(call, declared, layer);
}

// Casts inputs to the layer's computing type, as Keras does at the start of a call.
void ModelWalk::cast_inputs(LayerCall& call) const {
  for (Input& input : call.inputs) {
    if (!input.tensor.is_floating_point || input.tensor.dtype == call.traits.dtype) continue;
    Operation cast{call.traits.path,
                   call.traits.class_name,
                   Kind::cast,
                   std::string(name_of(call.traits.dtype)),
                   batch_rows_width(input.tensor.sizes),
                   input.tensor.dtype};
    cast.gradient = input.tensor.needs_gradient ? NeededGradients::all : NeededGradients::none;
    graph_.operations.push_back(std::move(cast));
    input.tensor.dtype = call.traits.dtype;
  }
}

Result<std::vector<Tensor>> ModelWalk::run_rule(LayerCall& call, const DeclaredShapes& declared, const Layer& layer) {
  const LayerRule rule = layer.is_input ? nullptr : find_rule(layer.class_name);
  if (rule != nullptr) return checked(call, rule(call));
  std::vector<Shape> shapes = declared.shapes;
  if (!declared.is_complete) shapes.assign(std::max<std::size_t>(1, declared.shapes.size()), call.shape());
  // A custom layer may have trainable weights, which the file does not list.
  if (call.traits.is_trainable && !layer.is_function && layer.class_name != "Lambda") call.set_needs_gradient(true);
  call.unknown(unknown_reason(layer, declared.is_complete), shapes, declared.is_complete);
  return checked(call, shapes);
}

namespace {

// Index of the recurrent operation that the output continues. Dropout between two recurrent layers does not separate
// them: PyTorch's recurrent call includes it.
std::optional<std::size_t> stack_of(const LayerCall& call) {
  const bool drops = call.traits.class_name == "Dropout" || call.traits.class_name == "SpatialDropout1D";
  return drops && !call.inputs.empty() ? call.inputs.front().tensor.stack : call.stack;
}

}  // namespace

Result<std::vector<Tensor>> ModelWalk::checked(const LayerCall& call, const std::vector<Shape>& shapes) const {
  if (call.failure()) return *call.failure();
  bool is_floating_point = call.traits.class_name == "cast";
  for (const Input& input : call.inputs) is_floating_point = is_floating_point || input.tensor.is_floating_point;
  if (call.traits.class_name == "Embedding") is_floating_point = true;
  std::vector<Tensor> tensors;
  for (const Shape& shape : shapes) {
    const bool is_positive = std::all_of(shape.begin(), shape.end(), [](std::int64_t size) { return size >= 1; });
    if (!is_positive || elements(shape) > kMaxElements || shape.size() > kMaxDimensions) {
      return Error{ErrorCode::malformed,
                   fmt::format("layer {} ({}): its output would be a tensor of {}", call.traits.path,
                               call.traits.class_name, text(shape)),
                   is_positive ? "use a smaller --batch or --input" : "use a larger --input"};
    }
    tensors.push_back({shape, call.traits.dtype, call.needs_gradient(), is_floating_point});
    if (shape.size() == 3 && tensors.size() == 1) tensors.back().stack = stack_of(call);
  }
  return tensors;
}

}  // namespace joulemap::predict::keras
