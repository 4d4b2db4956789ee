// SPDX-License-Identifier: Apache-2.0
//
// ScopeInterner: the tree of scopes of a process or of an imported trace. The same parent, kind and name always give
// the same id; ids count from 1, and 0 is the root. Each text and each scope is stored once. Built for millions of
// lookups: texts are identified by number, and a scope by its parent, kind and text in a flat hash table. Not
// thread-safe: the capture puts a lock around it (capture/scope_table.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/activity.h"

namespace joulemap {

class ScopeInterner {
 public:
  ScopeInterner();

  // Returns the number of a text, which find_or_add_child_scope() and text_at_index() take. Keeps a copy of the text.
  std::uint32_t intern_text(std::string_view text);
  const std::string& text_at_index(std::uint32_t number) const { return texts_[number]; }

  // Returns the child scope; the parent itself once there are kMaxScopes scopes.
  std::uint32_t find_or_add_child_scope(std::uint32_t parent, ScopeKind kind, std::uint32_t text);
  std::uint32_t find_or_add_child_scope(std::uint32_t parent, ScopeKind kind, std::string_view name);

  // Returns the scopes created since the last call.
  std::vector<Scope> take_new_scopes();
  std::vector<Scope> all_scopes() const;
  // Number of calls of find_or_add_child_scope() that returned the parent because of kMaxScopes.
  std::uint64_t refused_scope_count() const { return refused_scope_count_; }

  // Limit for programs that put numbers into the names of regions.
  static constexpr std::size_t kMaxScopes = 1'000'000;

 private:
  struct ScopeEntry {
    std::uint32_t parent;
    std::uint32_t text_index;
    ScopeKind kind;
  };
  std::size_t find_slot(std::uint32_t parent, ScopeKind kind, std::uint32_t text) const;
  void grow_slots();
  Scope scope_at(std::size_t index) const;

  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, std::uint32_t> text_indices_;
  std::vector<ScopeEntry> scopes_;    // by id - 1
  std::vector<std::uint32_t> slots_;  // open addressing: ids at the index of their hash or the next free one; 0: free
  std::size_t returned_scope_count_ = 0;
  std::uint64_t refused_scope_count_ = 0;
};

}  // namespace joulemap
