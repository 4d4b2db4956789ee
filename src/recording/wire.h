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
constexpr std::uint64_t unzigzag(std::uint64_t code) { return (code >> 1) ^ (std::uint64_t{0} - (code & 1)); }

class WireWriter {
 public:
  void u8(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void varint(std::uint64_t value) {
    if (value < 0x80) return u8(static_cast<std::uint8_t>(value));
    long_varint(value);
  }
  // Writes `value_of(item)` for each item; faster than single varint() calls.
  template <class Items, class ValueOf>
  void varints(const Items& items, const ValueOf& value_of) {
    constexpr std::size_t kLongest = 10;
    std::array<char, 256> buffer;
    std::size_t size = 0;
    for (const auto& item : items) {
      if (size + kLongest > buffer.size()) {
        bytes_.append(buffer.data(), size);
        size = 0;
      }
      std::uint64_t value = value_of(item);
      for (; value >= 0x80; value >>= 7) buffer[size++] = static_cast<char>(value | 0x80);
      buffer[size++] = static_cast<char>(value);
    }
    bytes_.append(buffer.data(), size);
  }
  void svarint(std::int64_t value) { varint(zigzag(static_cast<std::uint64_t>(value))); }
  void f64(double value);
  void text(std::string_view value);
  void raw(std::string_view bytes) { bytes_.append(bytes); }

  void optional_f64(std::optional<double> value);
  void optional_svarint(std::optional<std::int64_t> value);

  const std::string& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }
  std::string take() && { return std::move(bytes_); }

 private:
  void long_varint(std::uint64_t value);

  std::string bytes_;
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t u8();
  std::uint64_t varint();
  std::int64_t svarint() { return static_cast<std::int64_t>(unzigzag(varint())); }
  double f64();
  bool flag();  // one byte, 0 or 1
  std::string_view bytes(std::uint64_t size);
  std::string text() { return std::string(bytes(varint())); }
  // The fields of a record. Fields that a newer minor version appended are not read.
  WireReader record() { return WireReader(bytes(varint())); }
  // Number of items that follow. Each takes at least a byte, so a count above the remaining bytes is damage and must
  // not cause an allocation.
  std::size_t count();

  std::optional<double> optional_f64();
  std::optional<std::int64_t> optional_svarint();

  std::string_view rest() const { return rest_; }
  bool ok() const { return ok_; }
  void fail();

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace joulemap::recording
