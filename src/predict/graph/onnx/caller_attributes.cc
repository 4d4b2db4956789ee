// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/onnx/caller_attributes.h"

#include <algorithm>

namespace joulemap::predict::onnx {

bool refers_to_caller_attribute(const Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(),
                     [](const Attribute& attribute) { return !attribute.caller_attribute_name.empty(); });
}

Node copy_caller_attributes(const Node& caller, const Function& function, const Node& node) {
  Node copy = node;
  copy.attributes.clear();
  for (const Attribute& attribute : node.attributes) {
    const Attribute* resolved_attribute = &attribute;
    if (!attribute.caller_attribute_name.empty())
      resolved_attribute = find_attribute(caller, attribute.caller_attribute_name);
    for (const Attribute& standard : function.default_attributes) {
      if (resolved_attribute == nullptr && standard.name == attribute.caller_attribute_name)
        resolved_attribute = &standard;
    }
    if (resolved_attribute == nullptr) continue;  // neither caller nor function has it: the node's default applies
    copy.attributes.push_back(*resolved_attribute);
    copy.attributes.back().name = attribute.name;
  }
  return copy;
}

}  // namespace joulemap::predict::onnx
