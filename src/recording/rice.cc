// SPDX-License-Identifier: Apache-2.0
#include "recording/rice.h"

#include <algorithm>
#include <bit>

namespace joulemap::recording {
namespace {

constexpr unsigned kEscape = 16;      // ones that say: no quotient, all bits follow
constexpr unsigned kWidthBits = 6;    // width - 1, so 1 to 64
constexpr unsigned kTriedAround = 2;  // how far from the mean's logarithm the best k is looked for

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
  void put(std::uint64_t value, unsigned width) {
    for (; width > 0; value >>= 8) {
      const unsigned now = std::min(width, 8u);
      put_up_to_8(static_cast<unsigned>(value & 0xFF), now);
      width -= now;
    }
  }
  std::string take() && {
    if (filled_ > 0) bytes_.push_back(static_cast<char>(pending_));
    return std::move(bytes_);
  }

 private:
  void put_up_to_8(unsigned value, unsigned width) {
    pending_ |= (value & ((1u << width) - 1)) << filled_;
    filled_ += width;
    if (filled_ < 8) return;
    bytes_.push_back(static_cast<char>(pending_ & 0xFF));
    pending_ >>= 8;
    filled_ -= 8;
  }
  std::string bytes_;
  unsigned pending_ = 0;
  unsigned filled_ = 0;
};

class BitReader {
 public:
  explicit BitReader(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t take(unsigned width) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < width; ++i) value |= std::uint64_t{bit()} << i;
    return value;
  }
  unsigned bit() {
    const std::size_t at = position_ / 8;
    if (at >= bytes_.size()) {
      ended_ = true;
      return 0;
    }
    return (static_cast<unsigned char>(bytes_[at]) >> (position_++ % 8)) & 1u;
  }
  bool ended() const { return ended_; }
  std::size_t used() const { return (position_ + 7) / 8; }

 private:
  std::string_view bytes_;
  std::size_t position_ = 0;
  bool ended_ = false;
};

}  // namespace

RiceChoice choose_rice(std::span<const std::uint64_t> values) {
  double mean = 0;
  for (const std::uint64_t value : values) mean += static_cast<double>(value) / static_cast<double>(values.size());
  const auto rounded = mean >= 0x1p63 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(mean);
  const unsigned middle = static_cast<unsigned>(std::bit_width(rounded));
  // A few large values among zeros raise the mean; then k = 0 and their escapes are best.
  RiceChoice best{0, cost(values, 0)};
  const unsigned first = middle > kTriedAround ? middle - kTriedAround : 1;
  for (unsigned k = first; k <= std::min(middle + kTriedAround, kRiceLargestK); ++k) {
    const std::uint64_t bits = cost(values, k);
    if (bits < best.bits) best = {k, bits};
  }
  return best;
}

std::string rice_encode(std::span<const std::uint64_t> values, unsigned k) {
  BitWriter out;
  for (const std::uint64_t value : values) {
    const std::uint64_t quotient = value >> k;
    if (quotient < kEscape) {
      out.put((std::uint64_t{1} << quotient) - 1, static_cast<unsigned>(quotient) + 1);
      out.put(value, k);
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
  if (count / 8 > bytes.size()) return std::nullopt;  // a value takes at least a bit: do not allocate for a lie
  BitReader in(bytes);
  RiceDecoded decoded;
  decoded.values.reserve(count);
  for (std::size_t i = 0; i < count && !in.ended(); ++i) {
    unsigned ones = 0;
    while (ones < kEscape && in.bit() == 1) ++ones;
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
