// SPDX-License-Identifier: Apache-2.0
//
// A Keras model as in its JSON, in one form for all versions of Keras: layers, the calls of each (a shared layer has
// several), and the tensors between calls, in topological order. A Sequential is a chain of calls. Plain data that
// refers to the document, which must outlive it.
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
// Sizes of a tensor including the batch; unknown sizes are empty.
using PartialShape = std::vector<std::optional<std::int64_t>>;

// Output `output_index` of call `call_index` of a layer, by index.
struct TensorReference {
  std::size_t layer_index = 0;
  std::size_t call_index = 0;
  std::size_t output_index = 0;
};

struct Argument {
  std::string keyword;                    // empty: positional
  std::optional<TensorReference> tensor;  // empty: a constant
  Shape constant;
};

struct ModelCall {
  std::vector<Argument> arguments;  // only those that are tensors, in order
  const DocumentValue* positional = nullptr;
  const DocumentValue* keywords = nullptr;
};

struct Layer {
  std::string name;
  std::string class_name;
  const DocumentValue* layer_json = nullptr;  // class_name, config, build_config
  const DocumentValue* config_json = nullptr;
  bool is_input = false;
  bool is_function = false;                 // from keras.ops or TensorFlow
  std::optional<PartialShape> input_shape;  // for an input layer
  std::size_t used_output_count = 1;        // number of outputs of a call that other layers read
  std::vector<ModelCall> calls;
};

struct Model {
  std::string name;
  std::vector<Layer> layers;
  std::vector<std::pair<std::size_t, std::size_t>> call_order;  // layer and call, in topological order
  std::vector<std::size_t> input_layers;  // indices of input layers, in the order of the given tensors
  std::vector<TensorReference> output_tensors;
  // Output shapes that the document declares, by layer, call and tensor.
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, PartialShape> declared_shapes;
};

// Whether the layer is a model: a Sequential or Functional model of any class name.
bool is_model(const DocumentValue& layer);

Result<Model> parse_model(const DocumentValue& text);
Layer parse_layer(const DocumentValue& text, std::size_t number);  // without its calls

std::optional<PartialShape> parse_partial_shape(const DocumentValue* value);

// ---- keras_calls.cc: arguments of a layer call, in the formats of Keras 3 and Keras 2
class LayerNameIndex {
 public:
  explicit LayerNameIndex(const std::vector<Layer>& layers);
  std::optional<std::size_t> find(const std::string& name) const;

 private:
  std::map<std::string, std::size_t> layer_index_by_name_;
};
struct CallContext {
  const LayerNameIndex& names;
  Model& model;
};
Result<ModelCall> parse_call(const DocumentValue& text, CallContext context);
// Appends the tensors named in nested lists and tables, such as input_layers and output_layers.
void collect_tensor_references(const DocumentValue& value, const LayerNameIndex& names,
                               std::vector<TensorReference>& tensor_references);

}  // namespace joulemap::predict::keras
