// SPDX-License-Identifier: Apache-2.0
//
// ScopeTree: the scopes of an imported trace; each text and each scope is stored once. Built for millions of lookups:
// texts are identified by number, and a scope by its parent, kind and text in a flat hash table. Single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/activity.h"

namespace joulemap::ingest {

class ScopeTree {
 public:
  ScopeTree();

  // Returns the number of a text. The tree keeps a copy of it.
  std::uint32_t text(std::string_view text);
  const std::string& text_of(std::uint32_t number) const { return texts_[number]; }

  // Returns the child scope; the parent itself once there are kMaxScopes scopes.
  std::uint32_t child(std::uint32_t parent, ScopeKind kind, std::uint32_t text);
  std::uint32_t child(std::uint32_t parent, ScopeKind kind, std::string_view name) {
    return child(parent, kind, text(name));
  }

  // Returns the scopes created since the last call.
  std::vector<Scope> take_new_scopes();
  std::uint64_t refused_scopes() const { return refused_scopes_; }

  static constexpr std::size_t kMaxScopes = 1'000'000;

 private:
  struct Entry {
    std::uint32_t parent;
    std::uint32_t text;
    ScopeKind kind;
  };
  std::size_t slot_of(std::uint32_t parent, ScopeKind kind, std::uint32_t text) const;
  void grow();

  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, std::uint32_t> text_indices_;
  std::vector<Entry> scopes_;         // [id - 1]
  std::vector<std::uint32_t> slots_;  // open addressing: ids at the index of their hash or the next free one; 0: free
  std::size_t taken_ = 0;
  std::uint64_t refused_scopes_ = 0;
};

}  // namespace joulemap::ingest
