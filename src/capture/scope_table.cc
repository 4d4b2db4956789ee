// SPDX-License-Identifier: Apache-2.0
#include "capture/scope_table.h"

namespace joulemap::capture {

std::uint32_t ScopeTable::child(std::uint32_t parent, ScopeKind kind, std::string_view name) {
  const std::lock_guard lock(lock_);
  if (const auto known = ids_.find(KeyView{parent, kind, name}); known != ids_.end()) return known->second;
  if (scopes_.size() >= kMaxScopes) {
    ++refused_count_;
    return parent;
  }
  const auto id = static_cast<std::uint32_t>(scopes_.size() + 1);
  ids_.emplace(Key{parent, kind, std::string(name)}, id);
  scopes_.push_back({id, parent, kind, std::string(name)});
  return id;
}

std::vector<Scope> ScopeTable::take_new() {
  const std::lock_guard lock(lock_);
  std::vector<Scope> fresh(scopes_.begin() + static_cast<std::ptrdiff_t>(taken_count_), scopes_.end());
  taken_count_ = scopes_.size();
  return fresh;
}

std::vector<Scope> ScopeTable::all_scopes() const {
  const std::lock_guard lock(lock_);
  return scopes_;
}

std::uint64_t ScopeTable::refused_count() const {
  const std::lock_guard lock(lock_);
  return refused_count_;
}

}  // namespace joulemap::capture
