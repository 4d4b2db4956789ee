// SPDX-License-Identifier: Apache-2.0
//
// Protocol buffers wire format without generated code. The writer wraps protozero, which no other folder includes.
// Damaged bytes end the reading and set damaged(); nothing throws.
//
//   ProtobufReader message(bytes);
//   while (message.next()) {
//     if (message.field() == 2) name = message.bytes();
//   }
//   if (message.damaged()) ...
//
// A field of another type than requested reads as 0 or empty. Views point into the given bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/varint.h"

namespace joulemap::formats {

// Defined in the header for speed: an XPlane profile has a field every four bytes. With out-of-line calls of protozero,
// which reports errors as exceptions, reading took twice as long.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) : at_(message.data()), end_(message.data() + message.size()) {}

  // Moves to the next field; false after the last one and at invalid bytes.
  [[gnu::always_inline]] bool next() {
    kind_ = Kind::none;
    if (at_ == end_) return false;
    std::uint64_t tag = 0;
    if (!read_number(tag) || tag >> 3 == 0 || tag > UINT32_MAX) return mark_damaged();
    field_ = static_cast<std::uint32_t>(tag >> 3);
    switch (tag & 7U) {
      case 0:
        kind_ = Kind::number;
        return read_number(number_) || mark_damaged();
      case 1:
        kind_ = Kind::double_value;
        return read_fixed_width(number_) || mark_damaged();
      case 2:
        kind_ = Kind::bytes;
        return read_bytes() || mark_damaged();
      case 5:
        kind_ = Kind::float_value;
        return read_fixed_width(float_value_) || mark_damaged();
      default:
        return mark_damaged();  // groups, an obsolete wire type, or invalid
    }
  }
  bool damaged() const { return damaged_; }
  // Bytes after the current field; 0 after damage.
  std::size_t bytes_left() const { return static_cast<std::size_t>(end_ - at_); }
  // If the message ends within a length-delimited field, as in a truncated file: the available part of that field,
  // whose number is field(). Else empty.
  std::string_view truncated_field() const { return truncated_field_; }

  std::uint32_t field() const { return field_; }
  std::uint64_t unsigned_number() const { return kind_ == Kind::number ? number_ : 0; }
  std::int64_t signed_number() const { return static_cast<std::int64_t>(unsigned_number()); }
  double double_value() const { return kind_ == Kind::double_value ? std::bit_cast<double>(number_) : 0; }
  float float_value() const { return kind_ == Kind::float_value ? float_value_ : 0; }
  std::string_view bytes() const { return kind_ == Kind::bytes ? bytes_ : std::string_view(); }
  // Whether the field is length-delimited: a string, a message or packed numbers. Writers may encode repeated numbers
  // packed or as one field each.
  bool is_bytes() const { return kind_ == Kind::bytes; }

 private:
  enum class Kind : std::uint8_t { none, number, double_value, float_value, bytes };

  [[gnu::always_inline]] bool read_number(std::uint64_t& number) {
    const char* const varint_end = decode_varint(at_, end_, end_, number);
    if (varint_end == nullptr) return false;
    at_ = varint_end;
    return true;
  }
  template <class T>
  bool read_fixed_width(T& fixed_width_value) {
    if (end_ - at_ < static_cast<std::ptrdiff_t>(sizeof fixed_width_value)) return false;
    std::memcpy(&fixed_width_value, at_, sizeof fixed_width_value);
    at_ += sizeof fixed_width_value;
    return true;
  }
  [[gnu::always_inline]] bool read_bytes() {
    std::uint64_t size = 0;
    if (!read_number(size)) return false;
    const auto remaining_bytes = static_cast<std::uint64_t>(end_ - at_);
    if (size > remaining_bytes) {
      truncated_field_ = {at_, static_cast<std::size_t>(remaining_bytes)};
      return false;
    }
    bytes_ = {at_, static_cast<std::size_t>(size)};
    at_ += size;
    return true;
  }
  bool mark_damaged() {
    kind_ = Kind::none;
    at_ = end_;
    damaged_ = true;
    return false;
  }

  const char* at_;
  const char* end_;
  std::string_view bytes_;
  std::string_view truncated_field_;
  std::uint64_t number_ = 0;
  std::uint32_t field_ = 0;
  float float_value_ = 0;
  Kind kind_ = Kind::none;
  bool damaged_ = false;
};

// The varints of a packed field, up to the first invalid one.
std::vector<std::uint64_t> decode_packed_varints(std::string_view bytes);

class ProtobufWriter {
 public:
  ProtobufWriter& add(std::uint32_t field, std::uint64_t number);
  ProtobufWriter& add(std::uint32_t field, std::int64_t number) {
    return add(field, static_cast<std::uint64_t>(number));
  }
  ProtobufWriter& add(std::uint32_t field, double number);
  ProtobufWriter& add(std::uint32_t field, float number);
  ProtobufWriter& add(std::uint32_t field, std::string_view bytes);
  ProtobufWriter& add(std::uint32_t field, const ProtobufWriter& message) { return add(field, message.bytes_); }
  ProtobufWriter& add(std::uint32_t field, const std::string& bytes) { return add(field, std::string_view(bytes)); }
  ProtobufWriter& add(std::uint32_t field, const char* text) { return add(field, std::string_view(text)); }
  ProtobufWriter& add(std::uint32_t field, int number) { return add(field, static_cast<std::int64_t>(number)); }

  // All numbers in one packed field.
  ProtobufWriter& add_packed(std::uint32_t field, std::span<const std::uint64_t> numbers);
  ProtobufWriter& add_packed(std::uint32_t field, std::span<const double> numbers);

  const std::string& bytes() const { return bytes_; }
  // Empties the writer but keeps its memory, for callers that write many messages.
  void clear() { bytes_.clear(); }

 private:
  std::string bytes_;
};

}  // namespace joulemap::formats
