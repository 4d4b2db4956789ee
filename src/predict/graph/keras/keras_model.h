// SPDX-License-Identifier: Apache-2.0
//
// A Keras model as its JSON has it, in one form whatever wrote it: layers, the calls of each (a shared layer has several),
// and the tensors between calls, in an order in which all can be computed. A Sequential is a chain of calls. Plain data that
// refers to the document, which has to stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "formats/document.h"
#include "predict/graph/keras/shape.h"

namespace joulemap::predict::keras {

using formats::DocumentValue;
// With the batch; nothing where a size is open.
using OpenShape = std::vector<std::optional<std::int64_t>>;

// The `tensor`-th that the `call`-th call of a layer gives.
struct TensorName {
  std::size_t layer = 0;
  std::size_t call = 0;
  std::size_t tensor = 0;
};

struct Argument {
  std::string keyword;               // empty: by its place
  std::optional<TensorName> tensor;  // else a constant
  Shape constant;
};

struct ModelCall {
  std::vector<Argument> arguments;  // tensors only, in their order
  const DocumentValue* positional = nullptr;
  const DocumentValue* keywords = nullptr;
};

struct Layer {
  std::string name;
  std::string class_name;
  const DocumentValue* text = nullptr;  // class_name, config, build_config
  const DocumentValue* config = nullptr;
  bool is_input = false;
  bool is_function = false;              // of keras.ops or TensorFlow
  std::optional<OpenShape> input_shape;  // of an input
  std::size_t tensors_used = 1;          // of each call, by others
  std::vector<ModelCall> calls;
};

struct Model {
  std::string name;
  std::vector<Layer> layers;
  std::vector<std::pair<std::size_t, std::size_t>> order;  // layer and call
  std::vector<std::size_t> inputs;                         // layers, in the order in which tensors are given
  std::vector<TensorName> outputs;
  // What the text says that a call gives: layer, call, tensor.
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, OpenShape> declared;
};

// Whether layers stand in it: a Sequential or Functional, of whatever name.
bool is_model(const DocumentValue& layer);

Result<Model> parse_model(const DocumentValue& text);
Layer parse_layer(const DocumentValue& text, std::size_t number);  // without its calls

std::optional<OpenShape> open_shape(const DocumentValue* value);

// ---- keras_calls.cc: what a layer is called with, as Keras 3 writes it and as Keras 2 did
class LayerNames {
 public:
  explicit LayerNames(const std::vector<Layer>& layers);
  std::optional<std::size_t> find(const std::string& name) const;

 private:
  std::map<std::string, std::size_t> by_name_;
};
struct CallContext {
  const LayerNames& names;
  Model& model;
};
Result<ModelCall> parse_call(const DocumentValue& text, CallContext context);
// Names of tensors in whatever lists and tables: input_layers, output_layers.
void collect_names(const DocumentValue& value, const LayerNames& names, std::vector<TensorName>& found);

}  // namespace joulemap::predict::keras
