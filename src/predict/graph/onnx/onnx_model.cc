// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/onnx/onnx_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "formats/protobuf.h"

namespace joulemap::predict::onnx {
namespace {

using formats::ProtobufReader;

// Limit of nested branches and loops, beyond any real network: a malicious file must not overflow the stack.
constexpr int kMaxSubgraphDepth = 16;

// State of parsing: whether a message was malformed or nested too deeply. The last node shows where a truncated file
// ends.
struct ModelReadState {
  bool is_damaged = false;
  bool is_too_deep = false;
  std::string_view last_node_name;

  void check_message_end(const ProtobufReader& message) { is_damaged = is_damaged || message.damaged(); }
};

GraphBody read_graph_body(std::string_view bytes, int depth, ModelReadState& read_state);

void append_integers(const ProtobufReader& field, Sizes& integers) {
  if (!field.is_bytes()) return integers.push_back(field.signed_number());
  for (const std::uint64_t number : formats::decode_packed_varints(field.bytes())) {
    integers.push_back(static_cast<std::int64_t>(number));
  }
}

void append_reals(const ProtobufReader& field, std::vector<double>& reals) {
  if (!field.is_bytes()) return reals.push_back(field.float_value());
  for (std::size_t offset = 0; offset + sizeof(float) <= field.bytes().size(); offset += sizeof(float)) {
    float number = 0;
    std::memcpy(&number, field.bytes().data() + offset, sizeof number);
    reals.push_back(number);
  }
}

Attribute read_attribute(std::string_view bytes, int depth, ModelReadState& read_state) {
  Attribute attribute;
  ProtobufReader message(bytes);
  while (message.next()) {
    switch (message.field()) {
      case 1:
        attribute.name = message.bytes();
        break;
      case 2:
        attribute.real = message.float_value();
        break;
      case 3:
        attribute.integer = message.signed_number();
        break;
      case 4:
        attribute.text = message.bytes();
        break;
      case 5:
        attribute.tensor.assign(1, read_tensor(message.bytes()));
        break;
      case 6:
        attribute.subgraph.assign(1, read_graph_body(message.bytes(), depth + 1, read_state));
        break;
      case 7:
        append_reals(message, attribute.reals);
        break;
      case 8:
        append_integers(message, attribute.integers);
        break;
      case 9:
        attribute.texts.push_back(message.bytes());
        break;
      case 21:
        attribute.caller_attribute_name = message.bytes();
        break;
      default:
        break;
    }
  }
  read_state.check_message_end(message);
  return attribute;
}

std::string_view parse_name_scopes(std::string_view entry) {
  std::string_view key;
  std::string_view value;
  ProtobufReader message(entry);
  while (message.next()) {
    if (message.field() == 1) key = message.bytes();
    if (message.field() == 2) value = message.bytes();
  }
  return key == "pkg.torch.onnx.name_scopes" ? value : std::string_view();
}

Node read_node(std::string_view bytes, int depth, ModelReadState& read_state) {
  Node node;
  ProtobufReader message(bytes);
  while (message.next()) {
    switch (message.field()) {
      case 1:
        node.inputs.push_back(message.bytes());
        break;
      case 2:
        node.outputs.push_back(message.bytes());
        break;
      case 3:
        node.name = message.bytes();
        break;
      case 4:
        node.operator_type = message.bytes();
        break;
      case 5:
        node.attributes.push_back(read_attribute(message.bytes(), depth, read_state));
        break;
      case 7:
        node.operator_domain = message.bytes();
        break;
      case 9:
        if (node.name_scopes.empty()) node.name_scopes = parse_name_scopes(message.bytes());
        break;
      default:
        break;
    }
  }
  if (node.operator_domain == "ai.onnx") node.operator_domain = {};
  read_state.check_message_end(message);
  if (!node.outputs.empty()) read_state.last_node_name = node.name.empty() ? node.outputs[0] : node.name;
  return node;
}

Dimension read_dimension(std::string_view bytes) {
  Dimension dimension;
  ProtobufReader message(bytes);
  while (message.next()) {
    if (message.field() == 1) dimension.size = message.signed_number();
    if (message.field() == 2) dimension.size_symbol = message.bytes();
  }
  return dimension;
}

void read_tensor_type(std::string_view bytes, ValueInfo& info) {
  ProtobufReader message(bytes);
  while (message.next()) {
    if (message.field() == 1) info.type = static_cast<DataType>(message.unsigned_number() & 0xffff);
    if (message.field() != 2) continue;
    info.dimensions.emplace();
    ProtobufReader shape(message.bytes());
    while (shape.next()) {
      if (shape.field() == 1) info.dimensions->push_back(read_dimension(shape.bytes()));
    }
  }
}

ValueInfo read_value_info(std::string_view bytes) {
  ValueInfo info;
  ProtobufReader message(bytes);
  while (message.next()) {
    if (message.field() == 1) info.name = message.bytes();
    if (message.field() != 2) continue;
    ProtobufReader type(message.bytes());
    while (type.next()) {
      if (type.field() == 1) read_tensor_type(type.bytes(), info);
    }
  }
  return info;
}

// Reads a sparse weight, whose message has a field for the sizes; its name is in the message of its values.
Tensor read_sparse_tensor(std::string_view bytes) {
  Tensor tensor;
  Sizes sizes;
  ProtobufReader message(bytes);
  while (message.next()) {
    if (message.field() == 1) tensor = read_tensor(message.bytes());
    if (message.field() == 3) append_integers(message, sizes);
  }
  tensor.sizes = std::move(sizes);
  tensor.stored_values.reset();
  return tensor;
}

GraphBody read_graph_body(std::string_view bytes, int depth, ModelReadState& read_state) {
  GraphBody body;
  if (depth > kMaxSubgraphDepth) {
    read_state.is_too_deep = true;
    return body;
  }
  ProtobufReader message(bytes);
  while (message.next()) {
    switch (message.field()) {
      case 1:
        body.nodes.push_back(read_node(message.bytes(), depth, read_state));
        break;
      case 2:
        body.name = message.bytes();
        break;
      case 5:
        body.initializers.push_back(read_tensor(message.bytes()));
        break;
      case 11:
        body.inputs.push_back(read_value_info(message.bytes()));
        break;
      case 12:
        body.outputs.push_back(read_value_info(message.bytes()));
        break;
      case 13:
        body.value_infos.push_back(read_value_info(message.bytes()));
        break;
      case 15:
        body.initializers.push_back(read_sparse_tensor(message.bytes()));
        break;
      default:
        break;
    }
  }
  read_state.check_message_end(message);
  return body;
}

Function read_function(std::string_view bytes, ModelReadState& read_state) {
  Function function;
  ProtobufReader message(bytes);
  while (message.next()) {
    switch (message.field()) {
      case 1:
        function.name = message.bytes();
        break;
      case 4:
        function.inputs.push_back(message.bytes());
        break;
      case 5:
        function.outputs.push_back(message.bytes());
        break;
      case 7:
        function.nodes.push_back(read_node(message.bytes(), 1, read_state));
        break;
      case 10:
        function.operator_domain = message.bytes();
        break;
      case 11:
        function.default_attributes.push_back(read_attribute(message.bytes(), 1, read_state));
        break;
      case 13:
        function.overload_name = message.bytes();
        break;
      default:
        break;
    }
  }
  read_state.check_message_end(message);
  return function;
}

void read_opset_version(std::string_view bytes, Model& model) {
  std::string_view domain;
  std::int64_t version = 0;
  ProtobufReader message(bytes);
  while (message.next()) {
    if (message.field() == 1) domain = message.bytes();
    if (message.field() == 2) version = message.signed_number();
  }
  if (domain.empty() || domain == "ai.onnx") model.opset_version = std::max(model.opset_version, version);
}

Error truncated_model_error(std::size_t size, const ModelReadState& read_state) {
  const std::string position =
      read_state.last_node_name.empty() ? "before the first node" : "after node " + quoted(read_state.last_node_name);
  return {ErrorCode::malformed,
          fmt::format("the ONNX file is truncated or damaged: its {} bytes end {}", size, position),
          "export or download it again"};
}

Error not_onnx_error() {
  return {ErrorCode::malformed, "not an ONNX file: it contains no graph",
          "export one: torch.onnx.export(model, inputs, \"model.onnx\")"};
}

}  // namespace

Result<Model> read_model(std::string_view bytes) {
  Model model;
  ModelReadState read_state;
  bool has_graph_field = false;
  bool has_opset = false;
  ProtobufReader message(bytes);
  while (message.next()) {
    if (message.field() == 7) {
      model.graph = read_graph_body(message.bytes(), 0, read_state);
      has_graph_field = !model.graph.nodes.empty() || !model.graph.outputs.empty();
    }
    has_opset = has_opset || message.field() == 8;
    if (message.field() == 8) read_opset_version(message.bytes(), model);
    if (message.field() == 25) model.functions.push_back(read_function(message.bytes(), read_state));
  }
  if (message.damaged() && message.field() == 7 && !message.truncated_field().empty()) {
    const GraphBody truncated_field = read_graph_body(message.truncated_field(), 0, read_state);
    if (!truncated_field.nodes.empty()) return truncated_model_error(bytes.size(), read_state);
  }
  if (read_state.is_too_deep) return Error{ErrorCode::malformed, "graphs nested more than 16 deep", ""};
  if (!has_graph_field || (read_state.is_damaged && model.graph.nodes.empty())) return not_onnx_error();
  if (read_state.is_damaged || message.damaged()) return truncated_model_error(bytes.size(), read_state);
  if (!has_opset) return not_onnx_error();
  return model;
}

const Attribute* find_attribute(const Node& node, std::string_view name) {
  const auto matching_attribute = std::find_if(node.attributes.begin(), node.attributes.end(),
                                               [name](const Attribute& attribute) { return attribute.name == name; });
  return matching_attribute == node.attributes.end() ? nullptr : &*matching_attribute;
}

std::int64_t integer_attribute(const Node& node, std::string_view name, std::int64_t default_value) {
  const Attribute* const attribute = find_attribute(node, name);
  return attribute != nullptr ? attribute->integer.value_or(default_value) : default_value;
}

Sizes integers_attribute(const Node& node, std::string_view name) {
  const Attribute* const attribute = find_attribute(node, name);
  return attribute != nullptr ? attribute->integers : Sizes();
}

std::string_view text_attribute(const Node& node, std::string_view name, std::string_view default_value) {
  const Attribute* const attribute = find_attribute(node, name);
  return attribute != nullptr && !attribute->text.empty() ? attribute->text : default_value;
}

}  // namespace joulemap::predict::onnx
