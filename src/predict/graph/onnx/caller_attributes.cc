// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/onnx/caller_attributes.h"

#include <algorithm>

namespace joulemap::predict::onnx {

bool refers_to_caller(const Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(),
                     [](const Attribute& attribute) { return !attribute.reference.empty(); });
}

Node with_attributes_of(const Node& caller, const Function& function, const Node& node) {
  Node copy = node;
  copy.attributes.clear();
  for (const Attribute& attribute : node.attributes) {
    const Attribute* given = &attribute;
    if (!attribute.reference.empty()) given = find_attribute(caller, attribute.reference);
    for (const Attribute& standard : function.defaults) {
      if (given == nullptr && standard.name == attribute.reference) given = &standard;
    }
    if (given == nullptr) continue;  // neither caller nor function has it: the node's default applies
    copy.attributes.push_back(*given);
    copy.attributes.back().name = attribute.name;
  }
  return copy;
}

}  // namespace joulemap::predict::onnx
