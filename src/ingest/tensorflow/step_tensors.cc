// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "ingest/tensorflow/step_rows.h"
#include "scopes/tensor_text.h"

namespace joulemap::ingest {

void StepTensors::add_output(std::string_view tensor, std::string_view type, std::string shape) {
  if (tensor.ends_with(":0")) tensor.remove_suffix(2);
  outputs_.insert_or_assign(std::string(tensor), Tensor{std::string(type), std::move(shape)});
}

void StepTensors::add_inputs(std::string_view node, std::string_view inputs) {
  inputs_.insert_or_assign(std::string(node), std::string(inputs));
}

std::string StepTensors::tensors_of(std::string_view node) const {
  const auto known = inputs_.find(node);
  if (known == inputs_.end()) return {};
  scopes::TensorText text;
  for (std::string_view name : split(known->second, ',')) {
    name = trim(name);
    if (name.empty() || name.starts_with('^')) continue;
    if (name.ends_with(":0")) name.remove_suffix(2);
    const auto tensor = outputs_.find(name);
    if (tensor == outputs_.end()) return {};
    if (tensor->second.type != "resource") text.add(tensor->second.type, tensor->second.shape);
  }
  return text.text();
}

void StepRows::set_tensors(std::size_t first, const StepTensors& tensors) {
  for (std::size_t i = first; i < rows.size(); ++i) {
    rows[i].tensors = texts.intern(tensors.tensors_of(texts[rows[i].node]));
  }
}

}  // namespace joulemap::ingest
