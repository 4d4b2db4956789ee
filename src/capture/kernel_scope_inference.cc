// SPDX-License-Identifier: Apache-2.0
#include "capture/kernel_scope_inference.h"

namespace joulemap::capture {

void KernelScopeInference::store_step(std::span<const Kernel> step) {
  stored_step_.clear();  // keeps its capacity: called for every step
  for (const Kernel& kernel : step) stored_step_.emplace_back(kernel.class_id, kernel.scope);
  if (!scopes_by_class_.empty()) scopes_by_class_.clear();
}

std::optional<std::uint32_t> KernelScopeInference::next_scope_of_class(std::uint32_t class_id) {
  if (scopes_by_class_.empty()) {
    for (const auto& [step_class_id, scope] : stored_step_) scopes_by_class_[step_class_id].scopes.push_back(scope);
  }
  const auto class_entry = scopes_by_class_.find(class_id);
  if (class_entry == scopes_by_class_.end()) return std::nullopt;
  KernelClassScopes& class_scopes = class_entry->second;
  const std::uint32_t scope = class_scopes.scopes[class_scopes.next_scope_index];
  class_scopes.next_scope_index = (class_scopes.next_scope_index + 1) % class_scopes.scopes.size();
  return scope;
}

}  // namespace joulemap::capture
