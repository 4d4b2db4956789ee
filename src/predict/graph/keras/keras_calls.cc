// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/keras_model.h"

namespace joulemap::predict::keras {
namespace {

constexpr std::string_view kKeras2ConstantName = "_CONSTANT_VALUE";  // name that Keras 2 writes for a constant

struct NamedTensor {
  std::string layer;
  std::size_t call = 0;
  std::size_t tensor = 0;
};

// Parses a tensor name: ["conv1", 0, 0] or ["conv1", 0, 0, {...}].
std::optional<NamedTensor> parse_tensor_reference(const DocumentValue& value) {
  const DocumentValue::Array* const reference_items = value.array();
  if (reference_items == nullptr || reference_items->size() < 3 || reference_items->size() > 4) return std::nullopt;
  const std::optional<std::string> layer = (*reference_items)[0].text();
  const std::optional<std::int64_t> call = (*reference_items)[1].integer();
  const std::optional<std::int64_t> tensor = (*reference_items)[2].integer();
  if (!layer || !call || !tensor || *call < 0 || *tensor < 0) return std::nullopt;
  return NamedTensor{*layer, static_cast<std::size_t>(*call), static_cast<std::size_t>(*tensor)};
}

bool is_constant(const DocumentValue& value) {
  const DocumentValue::Array* const reference_items = value.array();
  return reference_items != nullptr && reference_items->size() >= 3 &&
         (*reference_items)[0].text() == kKeras2ConstantName;
}

Shape parse_declared_shape(const DocumentValue* value) {
  Shape shape;
  while (value != nullptr && value->array() != nullptr && !value->array()->empty() &&
         shape.size() < kMaxTensorDimensions) {
    shape.push_back(static_cast<std::int64_t>(value->array()->size()));
    value = &value->array()->front();
  }
  return shape;
}

Error missing_layer_error(const std::string& name) {
  return Error{ErrorCode::malformed,
               fmt::format("a layer takes a tensor from \"{}\", which is not a layer of the model", name),
               "save the model again with model.to_json()"};
}

class LayerCallParser {
 public:
  LayerCallParser(CallContext context, ModelCall& call) : context_(context), call_(call) {}

  // Keras 3: {"args": [...], "kwargs": {...}} with tensors as objects at any depth.
  void read_keras3_arguments(const DocumentValue& value, const std::string& keyword) {
    if (const DocumentValue::Array* const nested_arguments = value.array()) {
      for (const DocumentValue& nested_argument : *nested_arguments) read_keras3_arguments(nested_argument, keyword);
      return;
    }
    const DocumentValue::Table* const members = value.table();
    if (members == nullptr) return;
    const std::string class_name = value.text_or_empty("class_name");
    const DocumentValue* const config = value.find("config");
    if (class_name == "__keras_tensor__" && config != nullptr) {
      const DocumentValue* const history = config->find("keras_history");
      const std::optional<NamedTensor> named = history == nullptr ? std::nullopt : parse_tensor_reference(*history);
      if (named) add_tensor_argument(*named, keyword, parse_partial_shape(config->find("shape")));
      return;
    }
    if (class_name == "__tensor__" || class_name == "__numpy__") {
      call_.arguments.push_back(
          {keyword, std::nullopt, parse_declared_shape(config == nullptr ? nullptr : config->find("value"))});
      return;
    }
    if (!class_name.empty()) return;  // a slice, a type or another object that is no tensor
    read_members_by_name(*members, keyword);
  }

  // In files of Keras 2, `value` is a reference to a tensor, with the keyword arguments of the call, or a list of such
  // values.
  void read_keras2_inputs(const DocumentValue& value) {
    if (const std::optional<NamedTensor> named = parse_tensor_reference(value)) {
      if (*value.array()->front().text() != kKeras2ConstantName) add_tensor_argument(*named, "", std::nullopt);
    }
    if (parse_tensor_reference(value) || is_constant(value)) {
      if (value.array()->size() == 4) read_keywords(value.array()->back());
      return;
    }
    if (const DocumentValue::Array* const nested_inputs = value.array()) {
      for (const DocumentValue& nested_input : *nested_inputs) read_keras2_inputs(nested_input);
    } else if (const DocumentValue::Table* const members = value.table()) {
      for (const DocumentMember& member : *members) read_keras2_inputs(member.value);
    }
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  using DocumentMember = formats::DocumentMember;

  // Keras flattens the members of a table in the order of their names.
  void read_members_by_name(const DocumentValue::Table& members, const std::string& keyword) {
    std::vector<const DocumentMember*> sorted_members;
    for (const DocumentMember& member : members) sorted_members.push_back(&member);
    std::stable_sort(sorted_members.begin(), sorted_members.end(),
                     [](const DocumentMember* left_member, const DocumentMember* right_member) {
                       return left_member->key < right_member->key;
                     });
    for (const DocumentMember* member : sorted_members) read_keras3_arguments(member->value, keyword);
  }

  // Every tensor name of a call repeats the same keyword arguments: reads the first only.
  void read_keywords(const DocumentValue& keywords) {
    if (keywords.table() == nullptr || keywords.table()->empty() || call_.keywords != nullptr) return;
    call_.keywords = &keywords;
    for (const DocumentMember& member : *keywords.table()) {
      if (const std::optional<NamedTensor> named = parse_tensor_reference(member.value)) {
        if (context_.names.find(named->layer)) add_tensor_argument(*named, member.key, std::nullopt);
      } else if (const DocumentValue::Array* const keyword_values = member.value.array()) {
        for (const DocumentValue& keyword_value : *keyword_values) {
          const std::optional<NamedTensor> named_tensor = parse_tensor_reference(keyword_value);
          if (named_tensor && context_.names.find(named_tensor->layer))
            add_tensor_argument(*named_tensor, member.key, std::nullopt);
        }
      }
    }
  }

  void add_tensor_argument(const NamedTensor& named, const std::string& keyword, std::optional<PartialShape> declared) {
    const std::optional<std::size_t> layer = context_.names.find(named.layer);
    if (!layer) {
      if (!error_) error_ = missing_layer_error(named.layer);
      return;
    }
    call_.arguments.push_back({keyword, TensorReference{*layer, named.call, named.tensor}, {}});
    if (declared) context_.model.declared_shapes.try_emplace({*layer, named.call, named.tensor}, *std::move(declared));
  }

  CallContext context_;
  ModelCall& call_;
  std::optional<Error> error_;
};

}  // namespace

LayerNameIndex::LayerNameIndex(const std::vector<Layer>& layers) {
  for (std::size_t i = 0; i < layers.size(); ++i) layer_index_by_name_.try_emplace(layers[i].name, i);
}

std::optional<std::size_t> LayerNameIndex::find(const std::string& name) const {
  const auto index_entry = layer_index_by_name_.find(name);
  return index_entry == layer_index_by_name_.end() ? std::nullopt : std::optional(index_entry->second);
}

Result<ModelCall> parse_call(const DocumentValue& text, CallContext context) {
  ModelCall call;
  LayerCallParser parser(context, call);
  if (text.table() != nullptr && (text.find("args") != nullptr || text.find("kwargs") != nullptr)) {
    call.positional = text.find("args");
    call.keywords = text.find("kwargs");
    if (call.positional != nullptr) parser.read_keras3_arguments(*call.positional, "");
    if (call.keywords != nullptr && call.keywords->table() != nullptr) {
      for (const formats::DocumentMember& member : *call.keywords->table()) {
        parser.read_keras3_arguments(member.value, member.key);
      }
    }
  } else {
    parser.read_keras2_inputs(text);
  }
  if (parser.error()) return *parser.error();
  return call;
}

void collect_tensor_references(const DocumentValue& value, const LayerNameIndex& names,
                               std::vector<TensorReference>& tensor_references) {
  if (const std::optional<NamedTensor> named = parse_tensor_reference(value)) {
    if (const std::optional<std::size_t> layer = names.find(named->layer)) {
      tensor_references.push_back({*layer, named->call, named->tensor});
    }
    return;
  }
  if (const DocumentValue::Array* const nested_values = value.array()) {
    for (const DocumentValue& nested_value : *nested_values)
      collect_tensor_references(nested_value, names, tensor_references);
  } else if (value.table() != nullptr) {
    std::vector<const formats::DocumentMember*> sorted_members;
    for (const formats::DocumentMember& member : *value.table()) sorted_members.push_back(&member);
    std::stable_sort(
        sorted_members.begin(), sorted_members.end(),
        [](const auto* left_member, const auto* right_member) { return left_member->key < right_member->key; });
    for (const formats::DocumentMember* member : sorted_members)
      collect_tensor_references(member->value, names, tensor_references);
  }
}

}  // namespace joulemap::predict::keras
