// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/onnx/layer_names.h"

#include <string_view>
#include <vector>

#include "base/text.h"

namespace joulemap::predict::onnx {
namespace {

// The module in "['', 'layer1', 'layer1.0', 'conv2d']": the entry before the last, which is the operation.
std::string_view module_path_of_scopes(std::string_view scopes) {
  std::string_view last_scope;
  std::string_view module;
  std::size_t position = 0;
  while ((position = scopes.find('\'', position)) != std::string_view::npos) {
    const std::size_t end = scopes.find('\'', position + 1);
    if (end == std::string_view::npos) break;
    module = last_scope;
    last_scope = scopes.substr(position + 1, end - position - 1);
    position = end + 1;
  }
  return module;
}

// Converts a name such as "/layer1/layer1.0/conv1/Conv" to a path. A child of a list repeats the whole path: "layer1.0"
// after "layer1" is one level, not two.
std::string module_path_of_node_name(std::string_view name) {
  std::vector<std::string_view> parts = split(name.substr(1), '/');
  parts.pop_back();  // the last part is the operation
  std::string path;
  std::string_view previous;
  std::size_t previous_begin = 0;
  for (const std::string_view part : parts) {
    if (part.empty()) continue;
    const bool has_previous_prefix = !previous.empty() && part.size() > previous.size() &&
                                     part.substr(0, previous.size()) == previous && part[previous.size()] == '.';
    if (has_previous_prefix) {
      path.resize(previous_begin);
    } else if (!path.empty()) {
      path += '.';
      previous_begin = path.size();
    }
    path += part;
    previous = part;
  }
  return path;
}

}  // namespace

std::string module_path_of(const Node& node) {
  if (const std::string_view module = module_path_of_scopes(node.name_scopes); !module.empty())
    return to_valid_utf8(module);
  if (node.name.size() > 1 && node.name[0] == '/') {
    std::string path = module_path_of_node_name(node.name);
    if (!path.empty()) return to_valid_utf8(path);
  }
  if (!node.name.empty()) return to_valid_utf8(node.name);
  for (const std::string_view output : node.outputs) {
    if (!output.empty()) return to_valid_utf8(output);
  }
  return to_valid_utf8(node.operator_type);
}

}  // namespace joulemap::predict::onnx
