// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/graph_file.h"

#include "predict/graph/keras/keras_graph.h"
#include "predict/graph/onnx/onnx_graph.h"
#include "predict/graph/torch_list.h"

namespace joulemap::predict {
namespace {

constexpr std::string_view kUtf8ByteOrderMark = "\xEF\xBB\xBF";

bool is_json_text(std::string_view bytes) {
  if (bytes.starts_with(kUtf8ByteOrderMark)) bytes.remove_prefix(kUtf8ByteOrderMark.size());
  const std::size_t begin = bytes.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && (bytes[begin] == '{' || bytes[begin] == '[');
}

bool contains_text(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

Error not_a_graph_error(std::string_view content_description, std::string_view remedy) {
  return {ErrorCode::malformed, "this is " + std::string(content_description), std::string(remedy)};
}

Result<Graph> read_operation_list(std::string_view json, const GraphOptions& options) {
  if (options.batch || !options.inputs.empty()) {
    return Error{ErrorCode::usage, "a list of traced operations has fixed sizes: --batch and --input do not apply",
                 "list its operations again with other inputs: joulemap.list_operations(model, inputs)"};
  }
  return read_torch_list(json);
}

}  // namespace

Result<Graph> read_graph(std::string_view bytes, const GraphOptions& options) {
  if (bytes.empty()) return not_a_graph_error("an empty file", "export the model again");
  if (bytes.starts_with("PK\x03\x04")) {
    return not_a_graph_error(
        "a zip file, as torch.save and Keras (.keras) write it: it contains no graph that joulemap can read",
        "use torch.onnx.export(model, inputs, 'model.onnx'), joulemap.predict(model, inputs) in Python, or for Keras "
        "open('model.json', 'w').write(model.to_json())");
  }
  if (bytes.starts_with("\x89HDF")) {
    return not_a_graph_error("an HDF5 file, in which Keras stores weights",
                             "open('model.json', 'w').write(model.to_json())");
  }
  if (!is_json_text(bytes)) return read_onnx(bytes, options);
  if (contains_text(bytes, "joulemap.operations/")) return read_operation_list(bytes, options);
  if (contains_text(bytes, "\"class_name\"")) return read_keras(bytes, options);
  return not_a_graph_error(
      "JSON, but neither a Keras model (it has no class_name) nor a list of traced operations",
      "write the file with model.to_json() of Keras or json.dumps(joulemap.list_operations(model, inputs))");
}

}  // namespace joulemap::predict
