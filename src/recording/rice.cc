// SPDX-License-Identifier: Apache-2.0
#include "recording/rice.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace joulemap::recording {
namespace {

constexpr unsigned kEscape = 16;      // number of ones that announce all bits instead of a quotient
constexpr unsigned kWidthBits = 6;    // size of the field that contains the width minus 1, so 1 to 64
constexpr unsigned kOnePut = 56;      // most bits that one put() takes for quotient and low bits together
constexpr unsigned kTriedAround = 2;  // how far below log2 of the mean the search for k starts

unsigned width_of(std::uint64_t value) { return std::max(1u, static_cast<unsigned>(std::bit_width(value))); }

std::uint64_t cost(std::span<const std::uint64_t> values, unsigned k) {
  std::uint64_t bits = 0;
  for (const std::uint64_t value : values) {
    const std::uint64_t quotient = value >> k;
    bits += quotient < kEscape ? quotient + 1 + k : kEscape + kWidthBits + width_of(value);
  }
  return bits;
}

class BitWriter {
 public:
  // `value` must have no bits above `width`.
  void put(std::uint64_t value, unsigned width) {
    if (width > kMost) {
      put_some(value & kHalfMask, kHalf);
      value >>= kHalf;
      width -= kHalf;
    }
    put_some(value, width);
  }
  std::string take() && {
    flush();
    bytes_.append(ready_.data(), ready_count_);
    return std::move(bytes_);
  }

 private:
  static constexpr unsigned kHalf = 32;
  static constexpr std::uint64_t kHalfMask = 0xffff'ffff;
  static constexpr unsigned kMost = 56;  // leaves room for seven bits of an incomplete byte

  // Appends bits; copies eight bytes at a time and keeps the incomplete byte pending.
  void put_some(std::uint64_t value, unsigned width) {
    pending_ |= value << filled_;
    filled_ += width;
    if (ready_count_ + sizeof pending_ > ready_.size()) {
      bytes_.append(ready_.data(), ready_count_);
      ready_count_ = 0;
    }
    std::memcpy(ready_.data() + ready_count_, &pending_, sizeof pending_);
    ready_count_ += filled_ / 8;
    pending_ >>= filled_ & ~7u;
    filled_ %= 8;
  }
  void flush() {
    if (filled_ == 0) return;
    put_some(0, 8 - filled_);
  }

  std::string bytes_;
  std::array<char, 256> ready_;  // the next bytes of bytes_
  std::size_t ready_count_ = 0;
  std::uint64_t pending_ = 0;
  unsigned filled_ = 0;  // below 8
};

class BitReader {
 public:
  explicit BitReader(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t take(unsigned width) {
    if (width <= kHalf) return take_up_to_half(width);
    const std::uint64_t low = take_up_to_half(kHalf);
    return low | take_up_to_half(width - kHalf) << kHalf;
  }
  // Counts ones up to a zero, which it consumes, or up to kEscape ones.
  unsigned take_ones() {
    refill();
    const unsigned ones = std::min(static_cast<unsigned>(std::countr_one(ahead_)), kEscape);
    take_up_to_half(ones < kEscape ? ones + 1 : ones);
    return ones;
  }
  bool ended() const { return ended_; }
  std::size_t used() const { return next_ - filled_ / 8; }

 private:
  static constexpr unsigned kHalf = 32;

  void refill() {
    for (; filled_ <= 56 && next_ < bytes_.size(); filled_ += 8) {
      ahead_ |= std::uint64_t{static_cast<unsigned char>(bytes_[next_++])} << filled_;
    }
  }
  std::uint64_t take_up_to_half(unsigned width) {
    refill();
    if (width > filled_) {
      ended_ = true;
      return 0;
    }
    const std::uint64_t value = ahead_ & ((std::uint64_t{1} << width) - 1);
    ahead_ >>= width;
    filled_ -= width;
    return value;
  }

  std::string_view bytes_;
  std::size_t next_ = 0;     // index of the next byte to load
  std::uint64_t ahead_ = 0;  // loaded bits not yet consumed
  unsigned filled_ = 0;
  bool ended_ = false;
};

}  // namespace

unsigned choose_rice_k(std::span<const std::uint64_t> values) {
  double sum = 0;
  for (const std::uint64_t value : values) sum += static_cast<double>(value);
  const double mean = sum / static_cast<double>(values.size());
  const auto rounded = mean >= 0x1p63 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(mean);
  const unsigned best_k_estimate = static_cast<unsigned>(std::bit_width(rounded));
  // A few large values among zeros raise the mean; then k = 0 with escapes is best.
  unsigned best = 0;
  std::uint64_t fewest_bits = cost(values, 0);
  const unsigned first = best_k_estimate > kTriedAround ? best_k_estimate - kTriedAround : 1;
  for (unsigned k = first; k <= std::min(best_k_estimate + 1, kMaxRiceK); ++k) {
    const std::uint64_t bits = cost(values, k);
    if (bits >= fewest_bits) continue;
    best = k;
    fewest_bits = bits;
  }
  return best;
}

std::string rice_encode(std::span<const std::uint64_t> values, unsigned k) {
  BitWriter out;
  const std::uint64_t low_bits = (std::uint64_t{1} << k) - 1;
  for (const std::uint64_t value : values) {
    const std::uint64_t quotient = value >> k;
    if (quotient < kEscape) {
      const std::uint64_t ones = (std::uint64_t{1} << quotient) - 1;
      const auto width = static_cast<unsigned>(quotient) + 1;
      if (width + k <= kOnePut) {
        out.put(ones | (value & low_bits) << width, width + k);
      } else {
        out.put(ones, width);
        out.put(value & low_bits, k);
      }
    } else {
      const unsigned width = width_of(value);
      out.put((std::uint64_t{1} << kEscape) - 1, kEscape);
      out.put(width - 1, kWidthBits);
      out.put(value, width);
    }
  }
  return std::move(out).take();
}

std::optional<RiceDecoded> rice_decode(std::string_view bytes, std::size_t count, unsigned k) {
  if (count / 8 > bytes.size()) return std::nullopt;  // a value takes at least a bit: rejects an invalid count
  BitReader in(bytes);
  RiceDecoded decoded;
  decoded.values.reserve(count);
  for (std::size_t i = 0; i < count && !in.ended(); ++i) {
    const unsigned ones = in.take_ones();
    if (ones < kEscape) {
      decoded.values.push_back(std::uint64_t{ones} << k | in.take(k));
    } else {
      const auto width = static_cast<unsigned>(in.take(kWidthBits)) + 1;
      decoded.values.push_back(in.take(width));
    }
  }
  if (in.ended()) return std::nullopt;
  decoded.bytes = in.used();
  return decoded;
}

}  // namespace joulemap::recording
