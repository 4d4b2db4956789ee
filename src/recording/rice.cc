// SPDX-License-Identifier: Apache-2.0
#include "recording/rice.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace joulemap::recording {
namespace {

constexpr unsigned kEscapeOneCount = 16;    // number of ones that announce all bits instead of a quotient
constexpr unsigned kWidthFieldBits = 6;     // size of the field that contains the width minus 1, so 1 to 64
constexpr unsigned kMaxBitsPerWrite = 56;   // most bits that one write_bits() takes for quotient and low bits together
constexpr unsigned kRiceKSearchRadius = 2;  // how far below log2 of the mean the search for k starts

unsigned significant_bit_count(std::uint64_t value) {
  return std::max(1u, static_cast<unsigned>(std::bit_width(value)));
}

std::uint64_t rice_encoded_bit_count(std::span<const std::uint64_t> values, unsigned k) {
  std::uint64_t bits = 0;
  for (const std::uint64_t value : values) {
    const std::uint64_t quotient = value >> k;
    bits += quotient < kEscapeOneCount ? quotient + 1 + k
                                       : kEscapeOneCount + kWidthFieldBits + significant_bit_count(value);
  }
  return bits;
}

class BitWriter {
 public:
  // `value` must have no bits above `width`.
  void write_bits(std::uint64_t value, unsigned width) {
    if (width > kMaxWriteWidth_bits) {
      write_up_to_56_bits(value & kHalfWordMask, kHalfWordBits);
      value >>= kHalfWordBits;
      width -= kHalfWordBits;
    }
    write_up_to_56_bits(value, width);
  }
  std::string take_bytes() && {
    pad_to_byte();
    bytes_.append(byte_buffer_.data(), buffered_byte_count_);
    return std::move(bytes_);
  }

 private:
  static constexpr unsigned kHalfWordBits = 32;
  static constexpr std::uint64_t kHalfWordMask = 0xffff'ffff;
  static constexpr unsigned kMaxWriteWidth_bits = 56;  // leaves room for seven bits of an incomplete byte

  // Appends bits; copies eight bytes at a time and keeps the incomplete byte pending.
  void write_up_to_56_bits(std::uint64_t value, unsigned width) {
    pending_bits_ |= value << pending_bit_count_;
    pending_bit_count_ += width;
    if (buffered_byte_count_ + sizeof pending_bits_ > byte_buffer_.size()) {
      bytes_.append(byte_buffer_.data(), buffered_byte_count_);
      buffered_byte_count_ = 0;
    }
    std::memcpy(byte_buffer_.data() + buffered_byte_count_, &pending_bits_, sizeof pending_bits_);
    buffered_byte_count_ += pending_bit_count_ / 8;
    pending_bits_ >>= pending_bit_count_ & ~7u;
    pending_bit_count_ %= 8;
  }
  void pad_to_byte() {
    if (pending_bit_count_ == 0) return;
    write_up_to_56_bits(0, 8 - pending_bit_count_);
  }

  std::string bytes_;
  std::array<char, 256> byte_buffer_;  // the next bytes of bytes_
  std::size_t buffered_byte_count_ = 0;
  std::uint64_t pending_bits_ = 0;
  unsigned pending_bit_count_ = 0;  // below 8
};

class BitReader {
 public:
  explicit BitReader(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t read_bits(unsigned width) {
    if (width <= kHalfWordBits) return read_up_to_32_bits(width);
    const std::uint64_t low = read_up_to_32_bits(kHalfWordBits);
    return low | read_up_to_32_bits(width - kHalfWordBits) << kHalfWordBits;
  }
  // Counts ones up to a zero, which it consumes, or up to kEscapeOneCount ones.
  unsigned read_unary_ones() {
    refill_loaded_bits();
    const unsigned one_count = std::min(static_cast<unsigned>(std::countr_one(loaded_bits_)), kEscapeOneCount);
    read_up_to_32_bits(one_count < kEscapeOneCount ? one_count + 1 : one_count);
    return one_count;
  }
  bool is_past_end() const { return is_past_end_; }
  std::size_t consumed_byte_count() const { return next_byte_ - loaded_bit_count_ / 8; }

 private:
  static constexpr unsigned kHalfWordBits = 32;

  void refill_loaded_bits() {
    for (; loaded_bit_count_ <= 56 && next_byte_ < bytes_.size(); loaded_bit_count_ += 8) {
      loaded_bits_ |= std::uint64_t{static_cast<unsigned char>(bytes_[next_byte_++])} << loaded_bit_count_;
    }
  }
  std::uint64_t read_up_to_32_bits(unsigned width) {
    refill_loaded_bits();
    if (width > loaded_bit_count_) {
      is_past_end_ = true;
      return 0;
    }
    const std::uint64_t value = loaded_bits_ & ((std::uint64_t{1} << width) - 1);
    loaded_bits_ >>= width;
    loaded_bit_count_ -= width;
    return value;
  }

  std::string_view bytes_;
  std::size_t next_byte_ = 0;      // index of the next byte to load
  std::uint64_t loaded_bits_ = 0;  // loaded bits not yet consumed
  unsigned loaded_bit_count_ = 0;
  bool is_past_end_ = false;
};

}  // namespace

unsigned choose_rice_k(std::span<const std::uint64_t> values) {
  double sum = 0;
  for (const std::uint64_t value : values) sum += static_cast<double>(value);
  const double mean = sum / static_cast<double>(values.size());
  const auto rounded_mean = mean >= 0x1p63 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(mean);
  const unsigned best_k_estimate = static_cast<unsigned>(std::bit_width(rounded_mean));
  // A few large values among zeros raise the mean; then k = 0 with escapes is best.
  unsigned best_k = 0;
  std::uint64_t fewest_bits = rice_encoded_bit_count(values, 0);
  const unsigned min_k = best_k_estimate > kRiceKSearchRadius ? best_k_estimate - kRiceKSearchRadius : 1;
  for (unsigned k = min_k; k <= std::min(best_k_estimate + 1, kMaxRiceK); ++k) {
    const std::uint64_t bits = rice_encoded_bit_count(values, k);
    if (bits >= fewest_bits) continue;
    best_k = k;
    fewest_bits = bits;
  }
  return best_k;
}

std::string rice_encode(std::span<const std::uint64_t> values, unsigned k) {
  BitWriter out;
  const std::uint64_t low_bits = (std::uint64_t{1} << k) - 1;
  for (const std::uint64_t value : values) {
    const std::uint64_t quotient = value >> k;
    if (quotient < kEscapeOneCount) {
      const std::uint64_t unary_bits = (std::uint64_t{1} << quotient) - 1;
      const auto width = static_cast<unsigned>(quotient) + 1;
      if (width + k <= kMaxBitsPerWrite) {
        out.write_bits(unary_bits | (value & low_bits) << width, width + k);
      } else {
        out.write_bits(unary_bits, width);
        out.write_bits(value & low_bits, k);
      }
    } else {
      const unsigned width = significant_bit_count(value);
      out.write_bits((std::uint64_t{1} << kEscapeOneCount) - 1, kEscapeOneCount);
      out.write_bits(width - 1, kWidthFieldBits);
      out.write_bits(value, width);
    }
  }
  return std::move(out).take_bytes();
}

std::optional<RiceDecoded> rice_decode(std::string_view bytes, std::size_t count, unsigned k) {
  if (count / 8 > bytes.size()) return std::nullopt;  // a value takes at least a bit: rejects an invalid count
  BitReader in(bytes);
  RiceDecoded decoded;
  decoded.values.reserve(count);
  for (std::size_t i = 0; i < count && !in.is_past_end(); ++i) {
    const unsigned one_count = in.read_unary_ones();
    if (one_count < kEscapeOneCount) {
      decoded.values.push_back(std::uint64_t{one_count} << k | in.read_bits(k));
    } else {
      const auto width = static_cast<unsigned>(in.read_bits(kWidthFieldBits)) + 1;
      decoded.values.push_back(in.read_bits(width));
    }
  }
  if (in.is_past_end()) return std::nullopt;
  decoded.consumed_bytes = in.consumed_byte_count();
  return decoded;
}

}  // namespace joulemap::recording
