// SPDX-License-Identifier: Apache-2.0
//
// An ONNX file as plain data, parsed from the protobuf wire format without generated code: nodes, attributes, names and
// sizes of weights, and the numbers of small tensors, on which shapes depend. Texts point into the given bytes, which
// must outlive the model. Field numbers: onnx/onnx.proto of github.com/onnx/onnx.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace joulemap::predict::onnx {

using Sizes = std::vector<std::int64_t>;

// Values of TensorProto.DataType. Types without an enumerator (float8, int4, uint16, complex) keep their numeric value.
enum class DataType : std::int32_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  text = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint64 = 13,
  bfloat16 = 16,
};
inline bool is_floating_point(DataType type) {
  return type == DataType::float32 || type == DataType::float16 || type == DataType::float64 ||
         type == DataType::bfloat16;
}

// Tensors with more numbers are weights, not shapes: their numbers are not stored.
inline constexpr std::size_t kMaxStoredConstantValues = 256;

struct Tensor {
  std::string_view name;
  Sizes sizes;
  DataType type = DataType::undefined;
  // Numbers of a small tensor; empty if it is large, external or of another type. A double holds every valid size;
  // larger values, such as INT64_MAX as the end of a slice, are clamped where they are used.
  std::optional<std::vector<double>> stored_values;
};

struct GraphBody;

struct Attribute {
  std::string_view name;
  std::string_view caller_attribute_name;  // in a function: name of the caller's attribute to use
  std::optional<std::int64_t> integer;
  std::optional<double> real;
  std::string_view text;
  Sizes integers;
  std::vector<double> reals;
  std::vector<std::string_view> texts;
  std::vector<Tensor> tensor;       // one or none
  std::vector<GraphBody> subgraph;  // one or none
};

struct Node {
  std::vector<std::string_view> inputs;  // names; an empty name: omitted
  std::vector<std::string_view> outputs;
  std::string_view name;
  std::string_view operator_type;
  std::string_view operator_domain;  // empty: ai.onnx
  std::vector<Attribute> attributes;
  std::string_view name_scopes;  // "['', 'layer1', 'layer1.0', 'conv2d']", from PyTorch's newer exporter
};

struct Dimension {
  std::optional<std::int64_t> size;
  std::string_view size_symbol;  // "batch": the name of an unknown size; may be empty
};

struct ValueInfo {
  std::string_view name;
  DataType type = DataType::undefined;
  std::optional<std::vector<Dimension>> dimensions;
};

// The model's main graph, or the body of a branch or a loop.
struct GraphBody {
  std::string_view name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  std::vector<ValueInfo> value_infos;
};

struct Function {
  std::string_view name;
  std::string_view operator_domain;
  std::string_view overload_name;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<Node> nodes;
  std::vector<Attribute> default_attributes;
};

struct Model {
  GraphBody graph;
  std::vector<Function> functions;
  std::int64_t opset_version = 0;  // version of the operator set ai.onnx
};

Result<Model> read_model(std::string_view bytes);

const Attribute* find_attribute(const Node& node, std::string_view name);
std::int64_t integer_attribute(const Node& node, std::string_view name, std::int64_t default_value);
Sizes integers_attribute(const Node& node, std::string_view name);
std::string_view text_attribute(const Node& node, std::string_view name, std::string_view default_value);

// Parses a tensor message. Stores the numbers of small tensors only, and none from external files.
Tensor read_tensor(std::string_view bytes);
// The value of a Constant node; without sizes and numbers if its attribute is not supported.
Tensor constant_tensor(const Node& node);

}  // namespace joulemap::predict::onnx
