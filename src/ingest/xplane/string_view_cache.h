// SPDX-License-Identifier: Apache-2.0
//
// StringViewCache: caches numbers by texts of a profile. A profile stores each text once and refers to it, so texts are
// compared by address, which is faster than by content. The bytes must outlive the cache. Single-threaded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace joulemap::ingest {

template <std::size_t kTexts>
class StringViewCache {
 public:
  struct Key {
    std::array<std::string_view, kTexts> texts;
    std::int64_t number = 0;
  };

  // Returns the cached value, or calls `find` and caches its result.
  template <class Find>
  std::uint32_t find_or_compute(const Key& key, const Find& find) {
    Entry& entry = entries_[slot_of(key)];
    if (!are_same_views(entry.key, key)) entry = {key, find()};
    return entry.value;
  }

 private:
  static constexpr std::size_t kEntryCount = 1024;  // a power of two

  struct Entry {
    Key key;  // empty entries have no texts
    std::uint32_t value = 0;
  };

  static std::size_t slot_of(const Key& key) {
    std::uint64_t key_hash = static_cast<std::uint64_t>(key.number);
    for (const std::string_view text : key.texts) {
      key_hash = (key_hash ^ reinterpret_cast<std::uintptr_t>(text.data())) * kGoldenRatio64;
    }
    return key_hash >> 54;
  }
  // The first text of a key is never null.
  static bool are_same_views(const Key& a, const Key& b) {
    bool is_equal = a.number == b.number && a.texts[0].data() != nullptr;
    for (std::size_t i = 0; i < kTexts; ++i) {
      is_equal = is_equal && a.texts[i].data() == b.texts[i].data() && a.texts[i].size() == b.texts[i].size();
    }
    return is_equal;
  }

  static_assert(kEntryCount == std::size_t{1} << (64 - 54));
  std::vector<Entry> entries_ = std::vector<Entry>(kEntryCount);
};

}  // namespace joulemap::ingest
