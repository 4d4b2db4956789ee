// SPDX-License-Identifier: Apache-2.0
//
// Hashes that are the same on every machine and in every build, unlike std::hash: for ids, for seeds, and for tables whose
// order must not differ. Not for secrets. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace joulemap {

// 2^64 divided by the golden ratio. A key times this has its entropy in the upper bits: enough for a table.
inline constexpr std::uint64_t kGoldenRatio64 = 0x9e3779b97f4a7c15U;

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection after which each bit depends on all bits.
constexpr std::uint64_t mix_bits(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

inline constexpr std::uint64_t kFnvOffsetBasis = 0xcbf29ce484222325U;

// FNV-1a of one byte or of a text; `hash` continues an earlier one.
constexpr std::uint64_t fnv1a(unsigned char byte, std::uint64_t hash) { return (hash ^ byte) * 0x100000001b3U; }
constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = kFnvOffsetBasis) {
  for (const char c : text) hash = fnv1a(static_cast<unsigned char>(c), hash);
  return hash;
}

}  // namespace joulemap
