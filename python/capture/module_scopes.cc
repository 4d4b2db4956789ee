// SPDX-License-Identifier: Apache-2.0
#include "module_scopes.h"

namespace joulemap::python {
namespace {

jmc_scope phase_scope_of_pass(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return phase_scope(ModelMode::train, "forward");
    case Pass::loss:
      return phase_scope(ModelMode::train, "loss");
    case Pass::recompute:
      return phase_scope(ModelMode::train, "recompute");
    case Pass::inference:
      return phase_scope(ModelMode::inference, "forward");
    case Pass::inference_loss:
      return phase_scope(ModelMode::inference, "loss");
    case Pass::backward:
      break;
  }
  return phase_scope(ModelMode::train, "backward");
}

}  // namespace

jmc_scope phase_scope(ModelMode mode, const char* phase) {
  const jmc_scope parent =
      mode == ModelMode::unknown ? 0 : jmc_child_scope(0, JMC_MODE, mode == ModelMode::train ? "train" : "inference");
  return jmc_child_scope(parent, JMC_PHASE, phase);
}

std::uint32_t ModuleScopes::find_or_add_module_node(std::uint32_t parent, std::string_view name) {
  std::string key = std::to_string(parent) + ' ';
  key += name;
  const auto [found, is_new] = nodes_by_key_.try_emplace(std::move(key), static_cast<std::uint32_t>(nodes_.size()));
  if (is_new) nodes_.push_back({.parent = parent, .name = std::string(name)});
  return found->second;
}

jmc_scope ModuleScopes::make_scope(std::uint32_t node, Pass pass) {
  const jmc_scope made = node == 0
                             ? phase_scope_of_pass(pass)
                             : jmc_child_scope(scope(nodes_[node].parent, pass), JMC_MODULE, nodes_[node].name.c_str());
  nodes_[node].scopes[static_cast<std::size_t>(pass)] = made;
  return made;
}

void ModuleScopes::forget_scopes() {
  for (Node& node : nodes_) node.scopes = {};
}

}  // namespace joulemap::python
