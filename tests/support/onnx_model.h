// SPDX-License-Identifier: Apache-2.0
//
// Writes tiny ONNX files for tests, field by field: nodes in order, inputs, weights without values, constants with
// values. Negative sizes are symbols: -1 is "batch", -2 is "tokens".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/protobuf.h"

namespace joulemap::testing {

using Texts = std::vector<std::string>;
using Int64List = std::vector<std::int64_t>;

constexpr int kOnnxFloat = 1;
constexpr int kOnnxInt64 = 7;
constexpr int kOnnxFloat16 = 10;

inline formats::ProtobufWriter integers(std::string_view name, const Int64List& numbers) {
  formats::ProtobufWriter attribute;
  attribute.add(1, name);
  for (const std::int64_t number : numbers) attribute.add(8, number);
  return attribute;
}

inline formats::ProtobufWriter integer(std::string_view name, std::int64_t number) {
  return formats::ProtobufWriter().add(1, name).add(3, number);
}

inline formats::ProtobufWriter text_attribute(std::string_view name, std::string_view value) {
  return formats::ProtobufWriter().add(1, name).add(4, value);
}

inline formats::ProtobufWriter texts(std::string_view name, const Texts& values) {
  formats::ProtobufWriter attribute;
  attribute.add(1, name);
  for (const std::string& value : values) attribute.add(9, value);
  return attribute;
}

inline formats::ProtobufWriter subgraph(std::string_view name, const formats::ProtobufWriter& graph) {
  return formats::ProtobufWriter().add(1, name).add(6, graph);
}

inline formats::ProtobufWriter onnx_node(std::string_view type, const Texts& inputs, const Texts& outputs,
                                         const std::vector<formats::ProtobufWriter>& attributes = {},
                                         std::string_view name = {}, std::string_view domain = {}) {
  formats::ProtobufWriter node;
  for (const std::string& input : inputs) node.add(1, input);
  for (const std::string& output : outputs) node.add(2, output);
  if (!name.empty()) node.add(3, name);
  node.add(4, type);
  for (const formats::ProtobufWriter& attribute : attributes) node.add(5, attribute);
  if (!domain.empty()) node.add(7, domain);
  return node;
}

class OnnxModel {
 public:
  explicit OnnxModel(std::int64_t opset = 17) : opset_version_(opset) {}

  OnnxModel& input(std::string_view name, const Int64List& sizes, int type = kOnnxFloat) {
    formats::ProtobufWriter shape;
    for (const std::int64_t size : sizes) {
      formats::ProtobufWriter dimension;
      if (size >= 0) dimension.add(1, size);
      if (size < 0) dimension.add(2, size == -1 ? "batch" : "tokens");
      shape.add(1, dimension);
    }
    const formats::ProtobufWriter tensor = formats::ProtobufWriter().add(1, type).add(2, shape);
    graph_.add(11, formats::ProtobufWriter().add(1, name).add(2, formats::ProtobufWriter().add(1, tensor)));
    return *this;
  }
  OnnxModel& weight(std::string_view name, const Int64List& sizes, int type = kOnnxFloat) {
    formats::ProtobufWriter tensor;
    for (const std::int64_t size : sizes) tensor.add(1, size);
    graph_.add(5, tensor.add(2, type).add(8, name));
    return *this;
  }
  // An integer list constant.
  OnnxModel& list(std::string_view name, const Int64List& numbers) {
    formats::ProtobufWriter tensor;
    tensor.add(1, static_cast<std::int64_t>(numbers.size())).add(2, kOnnxInt64).add(8, name);
    for (const std::int64_t number : numbers) tensor.add(7, number);
    graph_.add(5, tensor);
    return *this;
  }
  // A float scalar constant.
  OnnxModel& scalar(std::string_view name, float number) {
    graph_.add(5, formats::ProtobufWriter().add(2, kOnnxFloat).add(4, number).add(8, name));
    return *this;
  }
  OnnxModel& node(std::string_view type, const Texts& inputs, const Texts& outputs,
                  const std::vector<formats::ProtobufWriter>& attributes = {}, std::string_view name = {},
                  std::string_view domain = {}) {
    return node(onnx_node(type, inputs, outputs, attributes, name, domain));
  }
  OnnxModel& node(const formats::ProtobufWriter& node) {
    graph_.add(1, node);
    return *this;
  }
  OnnxModel& output(std::string_view name) {
    graph_.add(12, formats::ProtobufWriter().add(1, name));
    return *this;
  }
  OnnxModel& function(const formats::ProtobufWriter& function) {
    functions_.push_back(function);
    return *this;
  }

  const formats::ProtobufWriter& graph() const { return graph_; }
  std::string bytes() const {
    formats::ProtobufWriter model;
    model.add(1, 8).add(7, graph_).add(8, formats::ProtobufWriter().add(1, "").add(2, opset_version_));
    for (const formats::ProtobufWriter& function : functions_) model.add(25, function);
    return model.bytes();
  }

 private:
  std::int64_t opset_version_;
  formats::ProtobufWriter graph_;
  std::vector<formats::ProtobufWriter> functions_;
};

}  // namespace joulemap::testing
