// SPDX-License-Identifier: Apache-2.0
//
// ScopeTable: the tree of scopes of this process. The same parent, kind and name always give the same id; ids count
// from 1, and 0 is the root. Thread-safe. A lookup takes a lock for some tens of nanoseconds; callers on hot paths
// cache the ids.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/activity.h"

namespace joulemap::capture {

class ScopeTable {
 public:
  // Limit for programs that put numbers into the names of regions; beyond it child() returns the parent.
  static constexpr std::uint32_t kMaxScopes = 1'000'000;

  std::uint32_t child(std::uint32_t parent, ScopeKind kind, std::string_view name);

  // Scopes created since the last call.
  std::vector<Scope> take_new();
  // All scopes. Written again at the end of a recording, so that a reader who lost a part of the file finds them there.
  std::vector<Scope> all_scopes() const;
  std::uint64_t refused_count() const;

 private:
  struct Key {
    std::uint32_t parent;
    ScopeKind kind;
    std::string name;
  };
  struct KeyView {
    std::uint32_t parent;
    ScopeKind kind;
    std::string_view name;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const KeyView& key) const {
      const std::size_t number = key.parent * std::size_t{8} + static_cast<std::size_t>(key.kind);
      return std::hash<std::string_view>()(key.name) ^ number * 0x9E3779B97F4A7C15u;
    }
    std::size_t operator()(const Key& key) const { return (*this)(KeyView{key.parent, key.kind, key.name}); }
  };
  struct Equal {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return a.parent == b.parent && a.kind == b.kind && a.name == b.name;
    }
  };

  mutable std::mutex lock_;
  std::unordered_map<Key, std::uint32_t, Hash, Equal> ids_;
  std::vector<Scope> scopes_;
  std::size_t taken_count_ = 0;
  std::uint64_t refused_count_ = 0;
};

}  // namespace joulemap::capture
