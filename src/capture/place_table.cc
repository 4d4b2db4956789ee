// SPDX-License-Identifier: Apache-2.0
#include "capture/place_table.h"

namespace joulemap::capture {

std::uint32_t PlaceTable::child(std::uint32_t parent, PlaceKind kind, std::string_view name) {
  const std::lock_guard lock(lock_);
  if (const auto known = ids_.find(KeyView{parent, kind, name}); known != ids_.end()) return known->second;
  if (places_.size() >= kMostPlaces) {
    ++refused_;
    return parent;
  }
  const auto id = static_cast<std::uint32_t>(places_.size() + 1);
  ids_.emplace(Key{parent, kind, std::string(name)}, id);
  places_.push_back({id, parent, kind, std::string(name)});
  return id;
}

std::vector<Place> PlaceTable::take_new() {
  const std::lock_guard lock(lock_);
  std::vector<Place> fresh(places_.begin() + static_cast<std::ptrdiff_t>(taken_), places_.end());
  taken_ = places_.size();
  return fresh;
}

std::vector<Place> PlaceTable::all() const {
  const std::lock_guard lock(lock_);
  return places_;
}

std::uint64_t PlaceTable::refused() const {
  const std::lock_guard lock(lock_);
  return refused_;
}

}  // namespace joulemap::capture
