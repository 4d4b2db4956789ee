// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/text_table.h"

#include <algorithm>
#include <cstring>

namespace joulemap::ingest::kineto {
namespace {

constexpr std::size_t kFirstSlots = 1024;
constexpr std::size_t kPage = 64 * 1024;

// Eight bytes at a time: std::hash would take a third of the time of reading a trace whose kernels have names of 300
// bytes. Collisions cost a comparison and nothing else.
std::uint32_t hash_of(std::string_view text) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
  std::uint64_t hash = text.size() * kOdd;
  const char* at = text.data();
  std::size_t left = text.size();
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 32;
  };
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    mix(word);
  }
  std::uint64_t last = 0;
  std::memcpy(&last, at, left);
  mix(last);
  return static_cast<std::uint32_t>(hash);
}

}  // namespace

std::uint32_t TextTable::number_of(std::string_view text) {
  if (slots_.size() < 2 * (texts_.size() + 1)) grow();
  const std::uint32_t hash = hash_of(text);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.number_plus_one == 0) {
      texts_.push_back(keep(text));
      slot = {hash, size()};
      return size() - 1;
    }
    if (slot.hash == hash && texts_[slot.number_plus_one - 1] == text) return slot.number_plus_one - 1;
  }
}

std::string_view TextTable::keep(std::string_view text) {
  if (text.size() > page_left_) {
    page_left_ = std::max(kPage, text.size());
    pages_.push_back(std::make_unique_for_overwrite<char[]>(page_left_));
    page_at_ = pages_.back().get();
  }
  char* const kept = page_at_;
  if (!text.empty()) std::memcpy(kept, text.data(), text.size());
  page_at_ += text.size();
  page_left_ -= text.size();
  return {kept, text.size()};
}

void TextTable::grow() {
  const std::vector<Slot> old = std::move(slots_);
  slots_.assign(std::max(kFirstSlots, old.size() * 2), Slot{});
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number_plus_one == 0) continue;
    std::size_t at = slot.hash & mask;
    while (slots_[at].number_plus_one != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

}  // namespace joulemap::ingest::kineto
