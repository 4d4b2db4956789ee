// SPDX-License-Identifier: Apache-2.0
//
// An ONNX file as plain data, read from the wire without generated code: nodes, attributes, the names and sizes of
// weights, and the numbers of small tensors, on which shapes hang. Texts point into the bytes given, which have to
// outlive the model. What the numbers of fields are: onnx/onnx.proto of github.com/onnx/onnx.
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

// TensorProto.DataType; others exist (8 and 4 bits), and are kept as their number.
enum class Type : std::int32_t {
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
inline bool has_fractions(Type type) {
  return type == Type::float32 || type == Type::float16 || type == Type::float64 || type == Type::bfloat16;
}

// More numbers than these are weights, not shapes.
inline constexpr std::size_t kMostNumbers = 256;

struct Tensor {
  std::string_view name;
  Sizes sizes;
  Type type = Type::undefined;
  // In a double every size fits, and what does not (the largest whole number, as an end of a slice) is clamped anyway.
  std::optional<std::vector<double>> numbers;
};

struct Body;

struct Attribute {
  std::string_view name;
  std::string_view reference;  // in a function: the attribute of the caller that stands here
  std::optional<std::int64_t> integer;
  std::optional<double> real;
  std::string_view text;
  Sizes integers;
  std::vector<double> reals;
  std::vector<std::string_view> texts;
  std::vector<Tensor> tensor;  // one or none
  std::vector<Body> body;      // one or none
};

struct Node {
  std::vector<std::string_view> inputs;  // empty: not given
  std::vector<std::string_view> outputs;
  std::string_view name;
  std::string_view type;
  std::string_view domain;  // empty: ai.onnx
  std::vector<Attribute> attributes;
  std::string_view scopes;  // "['', 'layer1', 'layer1.0', 'conv2d']", by PyTorch's newer exporter
};

struct Dimension {
  std::optional<std::int64_t> size;
  std::string_view symbol;
};

struct ValueInfo {
  std::string_view name;
  Type type = Type::undefined;
  std::optional<std::vector<Dimension>> dimensions;
};

// A graph: the model's own, or that of a branch or a loop.
struct Body {
  std::string_view name;
  std::vector<Node> nodes;
  std::vector<Tensor> weights;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  std::vector<ValueInfo> values;
};

struct Function {
  std::string_view name;
  std::string_view domain;
  std::string_view overload;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<Node> nodes;
  std::vector<Attribute> defaults;
};

struct Model {
  Body graph;
  std::vector<Function> functions;
  std::int64_t opset = 0;  // of ai.onnx
};

Result<Model> read_model(std::string_view bytes);

const Attribute* find_attribute(const Node& node, std::string_view name);
std::int64_t integer_of(const Node& node, std::string_view name, std::int64_t otherwise);
Sizes integers_of(const Node& node, std::string_view name);
std::string_view text_of(const Node& node, std::string_view name, std::string_view otherwise);

// Of a tensor's message; numbers of small ones only, and those of none that lie in another file.
Tensor read_tensor(std::string_view bytes);
// What a Constant node gives.
Tensor constant_tensor(const Node& node);

}  // namespace joulemap::predict::onnx
