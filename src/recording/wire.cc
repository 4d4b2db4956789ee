// SPDX-License-Identifier: Apache-2.0
#include "recording/wire.h"

#include <bit>

namespace joulemap::recording {

void WireWriter::write_long_varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) write_u8(static_cast<std::uint8_t>(value | 0x80));
  write_u8(static_cast<std::uint8_t>(value));
}

void WireWriter::write_f64(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) write_u8(static_cast<std::uint8_t>(bits >> shift));
}

void WireWriter::write_text(std::string_view value) {
  write_varint(value.size());
  write_raw(value);
}

void WireWriter::write_optional_f64(std::optional<double> value) {
  write_u8(value ? 1 : 0);
  if (value) write_f64(*value);
}

void WireWriter::write_optional_signed_varint(std::optional<std::int64_t> value) {
  write_u8(value ? 1 : 0);
  if (value) write_signed_varint(*value);
}

void WireReader::mark_as_failed() {
  ok_ = false;
  unread_bytes_ = {};
}

std::uint8_t WireReader::read_u8() {
  if (unread_bytes_.empty()) {
    mark_as_failed();
    return 0;
  }
  const auto value = static_cast<std::uint8_t>(unread_bytes_.front());
  unread_bytes_.remove_prefix(1);
  return value;
}

std::uint64_t WireReader::read_varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t byte = read_u8();
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if ((byte & 0x80u) == 0) return value;
  }
  mark_as_failed();
  return 0;
}

double WireReader::read_f64() {
  std::uint64_t bits = 0;
  for (unsigned shift = 0; shift < 64; shift += 8) bits |= std::uint64_t{read_u8()} << shift;
  return std::bit_cast<double>(bits);
}

bool WireReader::read_flag() {
  const std::uint8_t value = read_u8();
  if (value > 1) mark_as_failed();
  return value == 1;
}

std::string_view WireReader::read_bytes(std::uint64_t size) {
  if (size > unread_bytes_.size()) {
    mark_as_failed();
    return {};
  }
  const std::string_view leading_bytes = unread_bytes_.substr(0, size);
  unread_bytes_.remove_prefix(size);
  return leading_bytes;
}

std::size_t WireReader::read_count() {
  const std::uint64_t items = read_varint();
  if (items > unread_bytes_.size()) {
    mark_as_failed();
    return 0;
  }
  return items;
}

std::optional<double> WireReader::read_optional_f64() {
  if (!read_flag()) return std::nullopt;
  return read_f64();
}

std::optional<std::int64_t> WireReader::read_optional_signed_varint() {
  if (!read_flag()) return std::nullopt;
  return read_signed_varint();
}

}  // namespace joulemap::recording
