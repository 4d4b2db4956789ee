// SPDX-License-Identifier: Apache-2.0
//
// Scans JSON text many bytes at a time: to the next quote, the next bracket, the end of a number. Hand-written, because
// the reader of broken traces must accept stray quotes and control characters and resume after invalid text, which
// simdjson does not. json_cursor.h, built on this file, reads PyTorch traces at least as fast as simdjson On-Demand 3.0
// on the same blocks (0 to 40 % faster on a busy machine), so one parser suffices. Pure; any thread.
//
// kScanPadding_bytes zero bytes must follow every text.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace joulemap::formats {

inline constexpr std::size_t kScanPadding_bytes = 64;

inline std::uint64_t load_8_bytes(const char* position) {
  std::uint64_t word = 0;
  std::memcpy(&word, position, sizeof word);
  return word;
}

#ifdef __SSE2__

inline constexpr std::ptrdiff_t kScanWidth_bytes = 16;

// Bit mask of the quotes and backslashes among the next kScanWidth_bytes bytes.
inline std::uint32_t quote_or_backslash_mask(const char* position) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(position));
  const __m128i quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
  const __m128i escapes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
  return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_or_si128(quotes, escapes)));
}

// Bit mask of the brackets and quotes among the next kScanWidth_bytes bytes. '[' and '{', ']' and '}' differ by the bit
// 0x20.
inline std::uint32_t quote_or_bracket_mask(const char* position) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(position));
  const __m128i folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
  const __m128i opens = _mm_cmpeq_epi8(folded, _mm_set1_epi8('{'));
  const __m128i closing_brackets = _mm_cmpeq_epi8(folded, _mm_set1_epi8('}'));
  const __m128i quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
  return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(opens, closing_brackets), quotes)));
}

#else

inline constexpr std::ptrdiff_t kScanWidth_bytes = 8;

inline std::uint32_t quote_or_backslash_mask(const char* position) {
  std::uint32_t mask = 0;
  for (int i = 0; i < kScanWidth_bytes; ++i)
    mask |= static_cast<std::uint32_t>(position[i] == '"' || position[i] == '\\') << i;
  return mask;
}

inline std::uint32_t quote_or_bracket_mask(const char* position) {
  std::uint32_t mask = 0;
  for (int i = 0; i < kScanWidth_bytes; ++i) {
    const int folded = position[i] | 0x20;
    mask |= static_cast<std::uint32_t>(folded == '{' || folded == '}' || position[i] == '"') << i;
  }
  return mask;
}

#endif

// Bit mask of the quotes, backslashes and brackets among the next 64 bytes.
inline std::uint64_t structural_character_mask_64(const char* position) {
  std::uint64_t mask = 0;
  for (int i = 0; i < 64; i += kScanWidth_bytes) {
    mask |= std::uint64_t{quote_or_bracket_mask(position + i) | quote_or_backslash_mask(position + i)} << i;
  }
  return mask;
}

// The first quote or backslash at or after `position`; `end` if there is none.
inline const char* find_quote_or_backslash(const char* position, const char* end) {
  while (position < end) {
    if (const std::uint32_t mask = quote_or_backslash_mask(position); mask != 0) {
      position += std::countr_zero(mask);
      return position < end ? position : end;
    }
    position += kScanWidth_bytes;
  }
  return end;
}

// The first quote or bracket at or after `position`; `end` if there is none.
inline const char* find_quote_or_bracket(const char* position, const char* end) {
  while (position < end) {
    if (const std::uint32_t mask = quote_or_bracket_mask(position); mask != 0) {
      position += std::countr_zero(mask);
      return position < end ? position : end;
    }
    position += kScanWidth_bytes;
  }
  return end;
}

inline constexpr std::array<std::uint8_t, 256> kJsonByteClasses = [] {
  std::array<std::uint8_t, 256> kinds{};
  for (const char byte : {' ', '\n', '\r', '\t'})
    kinds[static_cast<unsigned char>(byte)] = 3;  // bit 0: whitespace; bit 1: ends a token
  for (const char byte : {',', '}', ']', ':', '\0'}) kinds[static_cast<unsigned char>(byte)] = 2;
  return kinds;
}();

inline bool is_json_space(char byte) { return (kJsonByteClasses[static_cast<unsigned char>(byte)] & 1) != 0; }

// Whether this byte ends a token: whitespace, a comma, a colon, a closing bracket, or a zero of the padding.
inline bool is_json_token_end(char byte) { return kJsonByteClasses[static_cast<unsigned char>(byte)] != 0; }

// Returns the first position at or after `position` that is not whitespace. Optimized for a newline followed by indentation.
inline const char* skip_json_whitespace(const char* position) {
  while (is_json_space(*position)) {
    ++position;
    const std::uint64_t non_space_mask = load_8_bytes(position) ^ 0x2020202020202020;
    position += non_space_mask == 0 ? 8 : std::countr_zero(non_space_mask) / 8;
  }
  return position;
}

struct DigitRun {
  std::uint32_t value = 0;
  int count = 0;  // number of digits, 0 to 8
};

// Parses up to eight decimal digits at `position`: one load and three multiplications, independent of their count.
inline DigitRun read_digits(const char* position) {
  static_assert(std::endian::native == std::endian::little);
  const std::uint64_t digits = load_8_bytes(position) ^ 0x3030303030303030;
  const std::uint64_t non_digit_mask = ((digits + 0x7676767676767676) | digits) & 0x8080808080808080;
  const int count = std::countr_zero(non_digit_mask) / 8;  // 8 if all are digits
  if (count == 0) return {};
  std::uint64_t value = digits << (64 - 8 * count);  // pads with leading zeros
  value = value * 10 + (value >> 8);
  value =
      ((value & 0x000000FF000000FF) * 0x000F424000000064 + ((value >> 16) & 0x000000FF000000FF) * 0x0000271000000001) >>
      32;
  return {static_cast<std::uint32_t>(value), count};
}

}  // namespace joulemap::formats
