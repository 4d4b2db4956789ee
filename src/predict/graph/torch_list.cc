// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/torch_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "formats/document.h"
#include "predict/graph/work.h"

namespace joulemap::predict {
namespace {

using formats::DocumentValue;

constexpr std::string_view kOperationListSchema = "joulemap.operations/1";
constexpr std::string_view kRecreateListRemedy = "create the list again with joulemap.list_operations of this version";

// Limit of parameters of an operation: twice as many as a three-dimensional convolution has.
constexpr std::size_t kMaxParametersPerOperation = 48;

Error malformed_list_error(std::string message) {
  return {ErrorCode::malformed, std::move(message), std::string(kRecreateListRemedy)};
}

// Required parameters of a kind (operation.h). Without this check a missing size would count as 1.
std::span<const std::string_view> required_parameters(const Operation& operation) {
  static constexpr std::array<std::string_view, 3> kDenseParameters = {"rows", "in", "out"};
  static constexpr std::array<std::string_view, 4> kBmmParameters = {"batch", "m", "k", "n"};
  static constexpr std::array<std::string_view, 5> kAttentionParameters = {"batch", "heads", "queries", "keys",
                                                                           "width"};
  static constexpr std::array<std::string_view, 6> kRecurrentParameters = {"batch",  "steps",  "in",
                                                                           "hidden", "layers", "directions"};
  static constexpr std::array<std::string_view, 10> kConvolutionParameters = {
      "batch", "channels", "out", "height", "width", "kernel", "stride", "padding", "dilation", "groups"};
  static constexpr std::array<std::string_view, 4> kImage = {"batch", "channels", "height", "width"};
  static constexpr std::array<std::string_view, 5> kResizeParameters = {"batch", "channels", "height", "width", "out"};
  static constexpr std::array<std::string_view, 5> kPaddingParameters = {"batch", "channels", "height", "width",
                                                                         "padding"};
  static constexpr std::array<std::string_view, 7> kPoolingParameters = {"batch",  "channels", "height", "width",
                                                                         "kernel", "stride",   "padding"};
  static constexpr std::array<std::string_view, 3> kTensor = {"batch", "rows", "width"};
  static constexpr std::array<std::string_view, 4> kConcatenateParameters = {"batch", "rows", "width", "parts"};
  static constexpr std::array<std::string_view, 3> kEmbeddingParameters = {"vocabulary", "width", "tokens"};
  static constexpr std::array<std::string_view, 2> kLossParameters = {"rows", "classes"};
  static constexpr std::array<std::string_view, 2> kOptimizerParameters = {"tensors", "elements"};
  switch (operation.kind) {
    case Kind::dense:
      return kDenseParameters;
    case Kind::bmm:
      return kBmmParameters;
    case Kind::attention:
      return kAttentionParameters;
    case Kind::recurrent:
      return kRecurrentParameters;
    case Kind::convolution:
      return kConvolutionParameters;
    case Kind::pooling:
      if (operation.form == "adaptive") return kResizeParameters;
      return kPoolingParameters;
    case Kind::resize:
      return kResizeParameters;
    case Kind::padding:
      return kPaddingParameters;
    case Kind::normalization:
    case Kind::input:
      return kImage;
    case Kind::concatenate:
      return kConcatenateParameters;
    case Kind::embedding:
      return kEmbeddingParameters;
    case Kind::loss:
      return kLossParameters;
    case Kind::optimizer:
      return kOptimizerParameters;
    case Kind::view:
    case Kind::unknown:
      return {};
    default:
      return kTensor;
  }
}

Result<std::int64_t> read_whole_number(const DocumentValue& value, std::string_view name, std::int64_t min_value) {
  const DocumentValue* number_json = value.find(name);
  if (number_json == nullptr) return malformed_list_error(fmt::format("\"{}\" is missing", name));
  const std::optional<std::int64_t> number = number_json->integer();
  if (!number) return malformed_list_error(fmt::format("\"{}\" is not an integer", name));
  if (*number < min_value || *number > kMaxElements) {
    return malformed_list_error(
        fmt::format("\"{}\" is {}, not between {} and {}", name, *number, min_value, kMaxElements));
  }
  return *number;
}

Result<OperationParameters> read_parameters(const DocumentValue& value) {
  const DocumentValue* parameters_json = value.find("parameters");
  if (parameters_json == nullptr || parameters_json->table() == nullptr)
    return malformed_list_error("\"parameters\" is missing");
  if (parameters_json->table()->size() > kMaxParametersPerOperation)
    return malformed_list_error("\"parameters\" has too many members");
  OperationParameters parameters;
  for (const formats::DocumentMember& member : *parameters_json->table()) {
    const Result<std::int64_t> number = read_whole_number(*parameters_json, member.key, 0);
    if (!number) return number.error();
    parameters.set(member.key, *number);
  }
  return parameters;
}

// Checks that required sizes exist, and that no tensor exceeds kMaxElements: single sizes may be small enough while
// their product is not.
Status check_operation_sizes(const Operation& operation) {
  for (const std::string_view name : required_parameters(operation)) {
    if (!operation.parameters.find(name)) {
      return malformed_list_error(fmt::format("{} needs the parameter \"{}\"", name_of(operation.kind), name));
    }
  }
  const OperationWork work = compute_work(operation);
  const double max_tensor_elements = std::max({work.inputs, work.outputs, work.weights});
  if (!(max_tensor_elements <= static_cast<double>(kMaxElements))) {
    return malformed_list_error(fmt::format("a tensor of {:.3g} elements, which fits no GPU", max_tensor_elements));
  }
  return Done{};
}

template <class Name>
Result<Name> read_enumerator(const DocumentValue& value, std::string_view key,
                             std::optional<Name> (*find)(std::string_view)) {
  const std::string text = value.text_or_empty(key);
  if (const std::optional<Name> enumerator = find(text)) return *enumerator;
  return malformed_list_error(fmt::format("unknown {} \"{}\"", key, text));
}

Result<Operation> read_operation(const DocumentValue& value) {
  if (value.table() == nullptr) return malformed_list_error("it is not an object");
  const Result<Kind> kind = read_enumerator<Kind>(value, "kind", kind_from_name);
  if (!kind) return kind.error();
  const Result<Dtype> dtype = read_enumerator<Dtype>(value, "dtype", dtype_from_name);
  if (!dtype) return dtype.error();
  const Result<Pass> pass = read_enumerator<Pass>(value, "pass", pass_from_name);
  if (!pass) return pass.error();
  Result<OperationParameters> parameters = read_parameters(value);
  if (!parameters) return std::move(parameters).error();
  const Result<std::int64_t> count = value.find("count") == nullptr ? 1 : read_whole_number(value, "count", 1);
  if (!count) return count.error();
  Operation operation;
  operation.layer = value.text_or_empty("layer");
  operation.source = value.text_or_empty("source");
  operation.kind = *kind;
  operation.form = value.text_or_empty("form");
  operation.parameters = std::move(*parameters);
  operation.dtype = *dtype;
  operation.pass = *pass;
  operation.count = *count;
  if (operation.layer.empty() && *pass == Pass::optimizer) operation.layer = "optimizer";
  const Status checked = check_operation_sizes(operation);
  if (!checked) return checked.error();
  return operation;
}

Result<std::vector<Operation>> read_operations(const DocumentValue& document) {
  const DocumentValue* operations_json = document.find("operations");
  if (operations_json == nullptr || operations_json->array() == nullptr)
    return malformed_list_error("the list \"operations\" is missing");
  if (operations_json->array()->empty()) return malformed_list_error("the list of operations is empty");
  std::vector<Operation> operations;
  operations.reserve(operations_json->array()->size());
  for (const DocumentValue& value : *operations_json->array()) {
    Result<Operation> operation = read_operation(value);
    if (!operation) {
      const std::string source = value.text_or_empty("source");
      const std::string operation_label =
          fmt::format("operation {}{}{}", operations.size(), source.empty() ? "" : ", ", source);
      return std::move(operation).error().with_context(operation_label);
    }
    operations.push_back(std::move(*operation));
  }
  return operations;
}

Result<std::vector<UnknownOperation>> read_unknown_operations(const DocumentValue& document) {
  std::vector<UnknownOperation> unknown;
  const DocumentValue* unknown_operations_json = document.find("unknown");
  if (unknown_operations_json == nullptr) return unknown;
  if (unknown_operations_json->array() == nullptr) return malformed_list_error("\"unknown\" is not a list");
  for (const DocumentValue& value : *unknown_operations_json->array()) {
    if (value.table() == nullptr) return malformed_list_error("a member of \"unknown\" is not an object");
    unknown.push_back({value.text_or_empty("layer"), value.text_or_empty("source"), value.text_or_empty("reason"),
                       value.boolean("bounded").value_or(false)});
  }
  return unknown;
}

// Adds to `graph.unknown` the operations of unknown kind that the file's list omits, so that reports list them.
void add_unlisted_unknown_operations(Graph& graph) {
  for (const Operation& operation : graph.operations) {
    if (operation.kind != Kind::unknown) continue;
    const auto is_same_operation = [&operation](const UnknownOperation& unknown_operation) {
      return unknown_operation.layer == operation.layer && unknown_operation.source == operation.source;
    };
    if (std::any_of(graph.unknown_operations.begin(), graph.unknown_operations.end(), is_same_operation)) continue;
    graph.unknown_operations.push_back(
        {operation.layer, operation.source, "an operation of unknown kind", has_lower_bound(operation)});
  }
}

Result<Graph> build_graph_from_operation_list(const DocumentValue& document) {
  const std::string schema = document.text_or_empty("schema");
  if (schema != kOperationListSchema)
    return malformed_list_error(fmt::format("its schema is \"{}\", not {}", schema, kOperationListSchema));
  Graph graph;
  graph.name = document.text_or_empty("name");
  graph.format = "torch";
  Result<std::vector<Operation>> operations = read_operations(document);
  if (!operations) return std::move(operations).error();
  graph.operations = std::move(*operations);
  Result<std::vector<UnknownOperation>> unknown = read_unknown_operations(document);
  if (!unknown) return std::move(unknown).error();
  graph.unknown_operations = std::move(*unknown);
  add_unlisted_unknown_operations(graph);
  const Result<std::int64_t> tensors = read_whole_number(document, "weight_tensors", 0);
  if (!tensors) return tensors.error();
  const Result<std::int64_t> elements = read_whole_number(document, "weight_elements", 0);
  if (!elements) return elements.error();
  // Lists of earlier versions have no count of Python calls.
  const Result<std::int64_t> python_calls = document.find("python_calls") == nullptr
                                                ? Result<std::int64_t>(0)
                                                : read_whole_number(document, "python_calls", 0);
  if (!python_calls) return python_calls.error();
  graph.weight_tensor_count = *tensors;
  graph.weight_element_count = *elements;
  graph.python_call_count = *python_calls;
  if (const DocumentValue* notes = document.find("notes"); notes != nullptr && notes->array() != nullptr) {
    for (const DocumentValue& note : *notes->array()) {
      if (auto text = note.text()) graph.notes.push_back(std::move(*text));
    }
  }
  return graph;
}

}  // namespace

Result<Graph> read_torch_list(std::string_view json) {
  constexpr std::string_view kDocumentName = "list of operations";
  const Result<DocumentValue> document = formats::read_json(json, kDocumentName);
  if (!document) return document.error();
  Result<Graph> graph = build_graph_from_operation_list(*document);
  if (!graph) return std::move(graph).error().with_context(kDocumentName);
  return graph;
}

}  // namespace joulemap::predict
