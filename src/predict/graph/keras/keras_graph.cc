// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/keras/keras_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "predict/graph/keras/model_walk.h"

namespace joulemap::predict {
namespace {

using namespace keras;

std::string partial_shape_text(const PartialShape& shape) {
  std::string out;
  for (const std::optional<std::int64_t>& size : shape) {
    out += (out.empty() ? "" : "x") + (size ? fmt::format("{}", *size) : std::string("?"));
  }
  return out;
}

// An example of a complete shape, for error messages.
std::string example_shape_text(const PartialShape& shape) {
  std::string out;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    out += fmt::format("{}{}", i == 0 ? "" : "x", shape[i].value_or(i == 0 ? 1 : 224));
  }
  return out;
}

const InputShape* requested_input_shape(const std::string& name, std::size_t number,
                                        const std::vector<InputShape>& inputs) {
  const auto matching_input =
      std::find_if(inputs.begin(), inputs.end(), [&](const InputShape& input) { return input.name == name; });
  if (matching_input != inputs.end()) return &*matching_input;
  for (const InputShape& input : inputs) {
    if (input.name.empty() && number-- == 0) return &input;
  }
  return nullptr;
}

// The shape of an input from the file or from the user, who may omit the batch.
PartialShape choose_input_shape(const Layer& layer, std::size_t number, const GraphOptions& options) {
  PartialShape shape = layer.input_shape.value_or(PartialShape{});
  if (const InputShape* const requested_shape = requested_input_shape(layer.name, number, options.inputs)) {
    const bool has_batch = requested_shape->sizes.size() + 1 != shape.size();
    PartialShape sizes(requested_shape->sizes.begin(), requested_shape->sizes.end());
    if (!has_batch) sizes.insert(sizes.begin(), shape.front());
    shape = std::move(sizes);
  }
  if (!shape.empty() && options.batch) shape.front() = *options.batch;
  return shape;
}

Result<Shape> resolve_input_sizes(const Layer& layer, std::size_t number, const GraphOptions& options) {
  PartialShape shape = choose_input_shape(layer, number, options);
  if (shape.empty()) {
    return Error{ErrorCode::usage, fmt::format("the model does not contain the shape of its input {}", layer.name),
                 "set its sizes, including the batch, as in --input 1x224x224x3"};
  }
  if (!shape.front()) shape.front() = 1;
  Shape sizes;
  for (const std::optional<std::int64_t>& size : shape) {
    if (!size) {
      return Error{ErrorCode::usage,
                   fmt::format("the input {} has unknown sizes: {}", layer.name, partial_shape_text(shape)),
                   fmt::format("set them, as in --input {}", example_shape_text(shape))};
    }
    if (*size < 1) {
      return Error{ErrorCode::usage, fmt::format("the input {} of {} is empty", layer.name, partial_shape_text(shape)),
                   "use sizes of at least 1"};
    }
    sizes.push_back(*size);
  }
  if (sizes.size() > kMaxTensorDimensions || element_count(sizes) > kMaxElements) {
    return Error{ErrorCode::usage,
                 fmt::format("the input {} of {} is too large", layer.name, partial_shape_text(shape)),
                 "use a smaller --batch or --input"};
  }
  return sizes;
}

Status check_requested_inputs(const GraphOptions& options, const Model& model) {
  std::string names;
  for (const std::size_t index : model.input_layers) names += (names.empty() ? "" : ", ") + model.layers[index].name;
  std::size_t unnamed_input_count = 0;
  for (const InputShape& requested_input : options.inputs) {
    unnamed_input_count += requested_input.name.empty() ? 1 : 0;
    const bool is_known_input =
        requested_input.name.empty() ||
        std::any_of(model.input_layers.begin(), model.input_layers.end(),
                    [&](std::size_t index) { return model.layers[index].name == requested_input.name; });
    if (!is_known_input) {
      return Error{ErrorCode::usage, fmt::format("the network has no input {}", quoted(requested_input.name)),
                   "its inputs are " + names};
    }
  }
  if (unnamed_input_count > model.input_layers.size())
    return Error{ErrorCode::usage, "--input sets more inputs than the network has", "its inputs are " + names};
  return Done{};
}

Operation make_input_operation(const Layer& layer, const Tensor& tensor, std::string_view type) {
  const Shape& sizes = tensor.sizes;
  const std::size_t last_axis = sizes.size() - 1;
  const bool has_channels = sizes.size() > 2;
  Operation input{layer.name, layer.class_name, Kind::input, "", {}, tensor.dtype};
  input.parameters = {{"batch", sizes.front()},
                      {"channels", has_channels ? sizes[last_axis] : 1},
                      {"height", has_channels ? element_count(sizes, 1, last_axis - 1) : 1},
                      {"width", has_channels ? sizes[last_axis - 1] : element_count(sizes, 1, sizes.size())}};
  if (type == "uint8" || type == "int8" || type == "bool") input.parameters.set("bytes", 1);
  input.gradient = NeededGradients::none;
  return input;
}

void note_assumed_batch(Graph& graph, std::optional<std::int64_t> file_batch, std::int64_t batch,
                        bool is_batch_requested) {
  if (!file_batch && !is_batch_requested) graph.notes.emplace_back("batch 1: the model does not fix it");
  if (file_batch && *file_batch != batch) {
    graph.notes.push_back(fmt::format("batch {} instead of the file's {}", batch, *file_batch));
  }
}

Result<formats::DocumentValue> parse_json_document(std::string_view json) {
  Result<formats::DocumentValue> text = formats::read_json(json, "Keras model");
  if (!text) {
    Error error = std::move(text).error();
    error.remedy =
        "write the file with open(path, \"w\").write(model.to_json()); joulemap does not read .keras and .h5 files";
    return error;
  }
  return text;
}

}  // namespace

Result<Graph> read_keras(std::string_view json, const GraphOptions& options) {
  if (options.batch && (*options.batch < 1 || *options.batch > kMaxElements)) {
    return Error{ErrorCode::usage, fmt::format("a batch of {} is invalid", *options.batch), "use --batch 1 or more"};
  }
  const Result<formats::DocumentValue> text = parse_json_document(json);
  if (!text) return text.error();
  const Result<Model> model = parse_model(*text);
  if (!model) return model.error();
  if (Status status = check_requested_inputs(options, *model); !status) return status.error();
  Graph graph;
  graph.name = model->name;
  graph.format = "keras";
  std::vector<Tensor> inputs;
  std::optional<std::int64_t> file_batch;
  for (std::size_t i = 0; i < model->input_layers.size(); ++i) {
    const Layer& layer = model->layers[model->input_layers[i]];
    Result<Shape> sizes = resolve_input_sizes(layer, i, options);
    if (!sizes) return std::move(sizes).error();
    const std::string type = layer.config_json == nullptr ? "" : layer.config_json->text_or_empty("dtype");
    const bool is_whole = type.find("int") != std::string::npos || type == "bool" || type == "string";
    const DtypePolicy policy =
        parse_dtype_policy(layer.config_json == nullptr ? nullptr : layer.config_json->find("dtype"), options.dtype);
    inputs.push_back({*std::move(sizes), policy.compute_dtype, false, !is_whole});
    graph.operations.push_back(make_input_operation(layer, inputs.back(), type));
    if (i == 0 && layer.input_shape) file_batch = layer.input_shape->front();
  }
  const std::int64_t batch = inputs.front().sizes.front();
  graph.batch = batch;
  note_assumed_batch(graph, file_batch, batch, options.batch || !options.inputs.empty());
  const formats::DocumentValue* const config = text->find("config");
  InheritedTraits inherited;
  inherited.is_trainable = config->boolean("trainable").value_or(true);
  ModelWalk walk(graph, options.dtype, batch, file_batch);
  Result<std::vector<Tensor>> outputs = walk.visit_model(*text, inputs, inherited);
  if (!outputs) return std::move(outputs).error();
  return graph;
}

}  // namespace joulemap::predict
