// SPDX-License-Identifier: Apache-2.0
//
// Varints of protocol buffers: seven bits a byte, lowest first; the top bit marks that more bytes follow. Decoded by
// hand and inline, because an XPlane profile has one every four bytes. Pure; any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace joulemap::formats {

static_assert(std::endian::native == std::endian::little);

// As decode_varint(), byte by byte.
const char* decode_varint_bytewise(const char* position, const char* end, std::uint64_t& number);

// Returns the end of the number at `position`; null if it extends beyond `end` or is too long. The memory up to `readable`,
// at or behind `end`, must be readable: where it has eight bytes, the function decodes them at once.
[[gnu::always_inline]] inline const char* decode_varint(const char* position, const char* end, const char* readable,
                                                        std::uint64_t& number) {
  constexpr std::uint64_t kContinuationBits = 0x8080808080808080;
  if (position != end && static_cast<signed char>(*position) >= 0) {
    number = static_cast<unsigned char>(*position);
    return position + 1;
  }
  std::uint64_t word = 0;
  if (readable - position < static_cast<std::ptrdiff_t>(sizeof word))
    return decode_varint_bytewise(position, end, number);
  std::memcpy(&word, position, sizeof word);
  const std::uint64_t ends = ~word & kContinuationBits;
  if (ends == 0) return decode_varint_bytewise(position, end, number);
  position += (std::countr_zero(ends) + 1) / 8;
  if (position > end) return nullptr;
  word &= (ends ^ (ends - 1)) & ~kContinuationBits;  // keeps the bytes of this number, without continuation bits
  word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
  word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
  number = (word & 0x000000000fffffff) | (word & 0x0fffffff00000000) >> 4;
  return position;
}

}  // namespace joulemap::formats
