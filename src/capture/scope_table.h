// SPDX-License-Identifier: Apache-2.0
//
// ScopeTable: the scopes of this process (scopes/scope_interner.h), thread-safe. A lookup takes a lock for some tens of
// nanoseconds; callers on hot paths cache the ids.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "scopes/scope_interner.h"

namespace joulemap::capture {

class ScopeTable {
 public:
  // Returns the scope; `parent` itself for a new one once there are ScopeInterner::kMaxScopes scopes.
  std::uint32_t find_or_add_child(std::uint32_t parent, ScopeKind kind, std::string_view name) {
    const std::lock_guard lock(lock_);
    return scopes_.find_or_add_child_scope(parent, kind, name);
  }
  // Scopes created since the last call.
  std::vector<Scope> take_new_scopes() {
    const std::lock_guard lock(lock_);
    return scopes_.take_new_scopes();
  }
  // All scopes. They are written again at the end of a recording, where a reader of a damaged file still finds them.
  std::vector<Scope> all_scopes() const {
    const std::lock_guard lock(lock_);
    return scopes_.all_scopes();
  }
  std::uint64_t refused_scope_count() const {
    const std::lock_guard lock(lock_);
    return scopes_.refused_scope_count();
  }

 private:
  mutable std::mutex lock_;
  ScopeInterner scopes_;
};

}  // namespace joulemap::capture
