// SPDX-License-Identifier: Apache-2.0
#include "recording/wire.h"

#include <bit>

namespace joulemap::recording {

void WireWriter::long_varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) u8(static_cast<std::uint8_t>(value | 0x80));
  u8(static_cast<std::uint8_t>(value));
}

void WireWriter::f64(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) u8(static_cast<std::uint8_t>(bits >> shift));
}

void WireWriter::text(std::string_view value) {
  varint(value.size());
  raw(value);
}

void WireWriter::optional_f64(std::optional<double> value) {
  u8(value ? 1 : 0);
  if (value) f64(*value);
}

void WireWriter::optional_svarint(std::optional<std::int64_t> value) {
  u8(value ? 1 : 0);
  if (value) svarint(*value);
}

void WireReader::fail() {
  ok_ = false;
  rest_ = {};
}

std::uint8_t WireReader::u8() {
  if (rest_.empty()) {
    fail();
    return 0;
  }
  const auto value = static_cast<std::uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  return value;
}

std::uint64_t WireReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t byte = u8();
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if ((byte & 0x80u) == 0) return value;
  }
  fail();
  return 0;
}

double WireReader::f64() {
  std::uint64_t bits = 0;
  for (unsigned shift = 0; shift < 64; shift += 8) bits |= std::uint64_t{u8()} << shift;
  return std::bit_cast<double>(bits);
}

bool WireReader::flag() {
  const std::uint8_t value = u8();
  if (value > 1) fail();
  return value == 1;
}

std::string_view WireReader::bytes(std::uint64_t size) {
  if (size > rest_.size()) {
    fail();
    return {};
  }
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

std::size_t WireReader::count() {
  const std::uint64_t items = varint();
  if (items > rest_.size()) {
    fail();
    return 0;
  }
  return items;
}

std::optional<double> WireReader::optional_f64() {
  if (!flag()) return std::nullopt;
  return f64();
}

std::optional<std::int64_t> WireReader::optional_svarint() {
  if (!flag()) return std::nullopt;
  return svarint();
}

}  // namespace joulemap::recording
