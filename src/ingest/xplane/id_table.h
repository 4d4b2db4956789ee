// SPDX-License-Identifier: Apache-2.0
//
// IdTable: maps the ids of names in a plane to entries, numbered in order of first use. Ids are looked up for every
// event. They are small and dense except in unusual files: a vector holds the small ones, a map the others. Not
// thread-safe while entries are added.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace joulemap::ingest {

template <class T>
class IdTable {
 public:
  T& operator[](std::int64_t id) {
    std::uint32_t& number = id >= 0 && id < kDenseIdLimit ? find_or_add_dense_slot(id) : sparse_numbers_[id];
    if (number == 0) {
      entries_.emplace_back();
      number = static_cast<std::uint32_t>(entries_.size());
    }
    return entries_[number - 1];
  }
  // Returns the number of the id's entry, counted from 1; 0 if there is none.
  std::uint32_t find_number(std::int64_t id) const {
    if (id >= 0 && id < kDenseIdLimit)
      return static_cast<std::size_t>(id) < dense_numbers_.size() ? dense_numbers_[static_cast<std::size_t>(id)] : 0;
    const auto sparse_entry = sparse_numbers_.find(id);
    return sparse_entry == sparse_numbers_.end() ? 0 : sparse_entry->second;
  }
  std::vector<T>& entries() { return entries_; }
  const T& at(std::uint32_t index) const { return entries_[index]; }

 private:
  static constexpr std::int64_t kDenseIdLimit = 1 << 20;

  std::uint32_t& find_or_add_dense_slot(std::int64_t id) {
    const auto index = static_cast<std::size_t>(id);
    if (index >= dense_numbers_.size()) dense_numbers_.resize(std::max(index + 1, 2 * dense_numbers_.size()));
    return dense_numbers_[index];
  }

  std::vector<std::uint32_t> dense_numbers_;  // index in entries_ + 1; 0: none
  std::unordered_map<std::int64_t, std::uint32_t> sparse_numbers_;
  std::vector<T> entries_;
};

}  // namespace joulemap::ingest
