// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "ingest/tensorflow/node_executions.h"
#include "scopes/tensor_text.h"

namespace joulemap::ingest {

void NodeInputTensors::add_output(std::string_view tensor, std::string_view type, std::string shape) {
  if (tensor.ends_with(":0")) tensor.remove_suffix(2);
  output_by_tensor_.insert_or_assign(std::string(tensor), Tensor{std::string(type), std::move(shape)});
}

void NodeInputTensors::add_inputs(std::string_view node, std::string_view inputs) {
  inputs_by_node_.insert_or_assign(std::string(node), std::string(inputs));
}

std::string NodeInputTensors::find_input_tensors(std::string_view node) const {
  const auto node_inputs = inputs_by_node_.find(node);
  if (node_inputs == inputs_by_node_.end()) return {};
  scopes::TensorText text;
  for (std::string_view name : split(node_inputs->second, ',')) {
    name = trim(name);
    if (name.empty() || name.starts_with('^')) continue;
    if (name.ends_with(":0")) name.remove_suffix(2);
    const auto tensor = output_by_tensor_.find(name);
    if (tensor == output_by_tensor_.end()) return {};
    if (tensor->second.type_name != "resource") text.add_tensor(tensor->second.type_name, tensor->second.shape_text);
  }
  return text.text();
}

void NodeExecutions::set_tensors(std::size_t first_row, const NodeInputTensors& tensors) {
  for (std::size_t i = first_row; i < rows.size(); ++i) {
    rows[i].tensors = interned_texts.intern(tensors.find_input_tensors(interned_texts[rows[i].node]));
  }
}

}  // namespace joulemap::ingest
