// SPDX-License-Identifier: Apache-2.0
#include "capture/scope_repetition.h"

namespace joulemap::capture {

void ScopeRepetition::remember(std::span<const Kernel> step) {
  step_.clear();  // keeps its capacity: called for every step
  for (const Kernel& kernel : step) step_.emplace_back(kernel.class_id, kernel.scope);
  if (!turns_.empty()) turns_.clear();
}

std::optional<std::uint32_t> ScopeRepetition::next(std::uint32_t class_id) {
  if (turns_.empty()) {
    for (const auto& [known, scope] : step_) turns_[known].scopes.push_back(scope);
  }
  const auto found = turns_.find(class_id);
  if (found == turns_.end()) return std::nullopt;
  Turns& turns = found->second;
  const std::uint32_t scope = turns.scopes[turns.next];
  turns.next = (turns.next + 1) % turns.scopes.size();
  return scope;
}

}  // namespace joulemap::capture
