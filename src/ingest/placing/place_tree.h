// SPDX-License-Identifier: Apache-2.0
//
// PlaceTree: the places of an imported trace: each text and each place once. Made for millions of lookups: texts are told by
// number, and a place by its parent, kind and text in a flat table. One thread.
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

class PlaceTree {
 public:
  PlaceTree();

  // The number of a text. Texts are kept.
  std::uint32_t text(std::string_view text);
  const std::string& text_of(std::uint32_t number) const { return texts_[number]; }

  // Where there are more than kMostPlaces, the parent itself.
  std::uint32_t child(std::uint32_t parent, PlaceKind kind, std::uint32_t text);
  std::uint32_t child(std::uint32_t parent, PlaceKind kind, std::string_view name) {
    return child(parent, kind, text(name));
  }

  // Those made since it was asked last.
  std::vector<Place> take_new();
  std::uint64_t refused() const { return refused_; }

  static constexpr std::size_t kMostPlaces = 1'000'000;

 private:
  struct Known {
    std::uint32_t parent;
    std::uint32_t text;
    PlaceKind kind;
  };
  std::size_t slot_of(std::uint32_t parent, PlaceKind kind, std::uint32_t text) const;
  void grow();

  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
  std::vector<Known> places_;         // [id - 1]
  std::vector<std::uint32_t> slots_;  // ids, at the place their hash says or the next free one; 0: free
  std::size_t taken_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace joulemap::ingest
