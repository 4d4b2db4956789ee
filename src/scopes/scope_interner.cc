// SPDX-License-Identifier: Apache-2.0
#include "scopes/scope_interner.h"

#include "base/hash.h"
#include "base/text.h"

namespace joulemap {
namespace {

constexpr std::size_t kInitialSlotCount = 1024;  // a power of two

std::size_t hash_scope(std::uint32_t parent, ScopeKind kind, std::uint32_t text) {
  std::uint64_t hash_bits = (std::uint64_t{parent} << 32 | text) * kGoldenRatio64;
  hash_bits ^= hash_bits >> 29 ^ static_cast<std::uint64_t>(kind) * 0xbf58476d1ce4e5b9U;
  return static_cast<std::size_t>(hash_bits ^ hash_bits >> 32);
}

}  // namespace

ScopeInterner::ScopeInterner() : slots_(kInitialSlotCount) {}

std::uint32_t ScopeInterner::intern_text(std::string_view text) {
  const auto matching_text = text_indices_.find(text);
  if (matching_text != text_indices_.end()) return matching_text->second;
  const auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.emplace_back(text);
  text_indices_.emplace(texts_.back(), number);
  return number;
}

std::size_t ScopeInterner::find_slot(std::uint32_t parent, ScopeKind kind, std::uint32_t text) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash_scope(parent, kind, text) & mask;
  while (slots_[slot] != 0) {
    const ScopeEntry& scope = scopes_[slots_[slot] - 1];
    if (scope.parent == parent && scope.text_index == text && scope.kind == kind) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

void ScopeInterner::grow_slots() {
  slots_.assign(slots_.size() * 2, 0);
  for (std::uint32_t id = 1; id <= scopes_.size(); ++id) {
    const ScopeEntry& scope = scopes_[id - 1];
    slots_[find_slot(scope.parent, scope.kind, scope.text_index)] = id;
  }
}

std::uint32_t ScopeInterner::find_or_add_child_scope(std::uint32_t parent, ScopeKind kind, std::uint32_t text) {
  const std::size_t slot = find_slot(parent, kind, text);
  if (slots_[slot] != 0) return slots_[slot];
  if (scopes_.size() >= kMaxScopes) {
    ++refused_scope_count_;
    return parent;
  }
  scopes_.push_back({parent, text, kind});
  const auto id = static_cast<std::uint32_t>(scopes_.size());
  slots_[slot] = id;
  if (scopes_.size() * 2 > slots_.size()) grow_slots();
  return id;
}

std::uint32_t ScopeInterner::find_or_add_child_scope(std::uint32_t parent, ScopeKind kind, std::string_view name) {
  // Does not keep the text of a scope that is refused: the number of such texts is unlimited.
  if (scopes_.size() >= kMaxScopes && !text_indices_.contains(name)) {
    ++refused_scope_count_;
    return parent;
  }
  return find_or_add_child_scope(parent, kind, intern_text(name));
}

Scope ScopeInterner::scope_at(std::size_t index) const {
  const ScopeEntry& scope = scopes_[index];
  return {static_cast<std::uint32_t>(index + 1), scope.parent, scope.kind, to_valid_utf8(texts_[scope.text_index])};
}

std::vector<Scope> ScopeInterner::take_new_scopes() {
  std::vector<Scope> new_scopes;
  for (; returned_scope_count_ < scopes_.size(); ++returned_scope_count_)
    new_scopes.push_back(scope_at(returned_scope_count_));
  return new_scopes;
}

std::vector<Scope> ScopeInterner::all_scopes() const {
  std::vector<Scope> scope_list;
  scope_list.reserve(scopes_.size());
  for (std::size_t index = 0; index < scopes_.size(); ++index) scope_list.push_back(scope_at(index));
  return scope_list;
}

}  // namespace joulemap
