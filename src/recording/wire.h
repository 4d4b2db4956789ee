// SPDX-License-Identifier: Apache-2.0
//
// Encodes plain values as bytes of a chunk payload and decodes them (docs/reference/recording-format.md): little-endian
// base-128 varints, zigzag for signed numbers, IEEE doubles, length-prefixed strings and records. Pure; any thread.
//
// WireReader never reads beyond its end. A missing value reads as zero and fails the reader permanently: decode
// everything, then check ok() once, and discard the result if it is false.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace joulemap::recording {

constexpr std::uint64_t zigzag(std::uint64_t signed_bits) {
  return (signed_bits << 1) ^ (std::uint64_t{0} - (signed_bits >> 63));
}
constexpr std::uint64_t zigzag_decode(std::uint64_t code) { return (code >> 1) ^ (std::uint64_t{0} - (code & 1)); }

class WireWriter {
 public:
  void write_u8(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void write_varint(std::uint64_t value) {
    if (value < 0x80) return write_u8(static_cast<std::uint8_t>(value));
    write_long_varint(value);
  }
  // Writes `value_of(item)` for each item; faster than single write_varint() calls.
  template <class Items, class ValueOf>
  void write_varints(const Items& items, const ValueOf& value_of) {
    constexpr std::size_t kMaxVarintBytes = 10;
    std::array<char, 256> buffer;
    std::size_t size = 0;
    for (const auto& item : items) {
      if (size + kMaxVarintBytes > buffer.size()) {
        bytes_.append(buffer.data(), size);
        size = 0;
      }
      std::uint64_t value = value_of(item);
      for (; value >= 0x80; value >>= 7) buffer[size++] = static_cast<char>(value | 0x80);
      buffer[size++] = static_cast<char>(value);
    }
    bytes_.append(buffer.data(), size);
  }
  void write_signed_varint(std::int64_t value) { write_varint(zigzag(static_cast<std::uint64_t>(value))); }
  void write_f64(double value);
  void write_text(std::string_view value);
  void write_raw(std::string_view bytes) { bytes_.append(bytes); }

  void write_optional_f64(std::optional<double> value);
  void write_optional_signed_varint(std::optional<std::int64_t> value);

  const std::string& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }
  std::string take_bytes() && { return std::move(bytes_); }

 private:
  void write_long_varint(std::uint64_t value);

  std::string bytes_;
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : unread_bytes_(bytes) {}

  std::uint8_t read_u8();
  std::uint64_t read_varint();
  std::int64_t read_signed_varint() { return static_cast<std::int64_t>(zigzag_decode(read_varint())); }
  double read_f64();
  bool read_flag();  // one byte, 0 or 1
  std::string_view read_bytes(std::uint64_t size);
  std::string read_text() { return std::string(read_bytes(read_varint())); }
  // The fields of a record. Fields that a newer minor version appended are not read.
  WireReader read_record() { return WireReader(read_bytes(read_varint())); }
  // Number of items that follow. Each takes at least a byte, so a count above the remaining bytes is damage and must
  // not cause an allocation.
  std::size_t read_count();

  std::optional<double> read_optional_f64();
  std::optional<std::int64_t> read_optional_signed_varint();

  std::string_view unread_bytes() const { return unread_bytes_; }
  bool ok() const { return ok_; }
  void mark_as_failed();

 private:
  std::string_view unread_bytes_;
  bool ok_ = true;
};

}  // namespace joulemap::recording
