// SPDX-License-Identifier: Apache-2.0
//
// StringPool: stores each distinct text once and numbers the texts from 0. Used by one thread at a time; texts live as
// long as the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace joulemap::ingest::kineto {

class StringPool {
 public:
  // Returns the number of an equal text, or adds the text with the next number.
  std::uint32_t intern(std::string_view text);

  std::string_view text(std::uint32_t number) const { return texts_[number]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(texts_.size()); }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t index_plus_one = 0;  // 0: empty
  };
  std::string_view copy_to_page(std::string_view text);
  void grow();

  std::vector<Slot> slots_;  // hash table with open addressing; its size is a power of two, at most half full
  std::vector<std::string_view> texts_;
  std::vector<std::unique_ptr<char[]>> pages_;
  char* page_cursor_ = nullptr;
  std::size_t page_bytes_left_ = 0;
};

}  // namespace joulemap::ingest::kineto
