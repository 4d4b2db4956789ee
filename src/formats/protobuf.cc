// SPDX-License-Identifier: Apache-2.0
#include "formats/protobuf.h"

#include <cstddef>
#include <cstring>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>

namespace joulemap::formats {

static_assert(std::endian::native == std::endian::little);

bool ProtobufReader::read_long_number(std::uint64_t& number) {
  constexpr int kMostBits = 64;
  number = 0;
  for (int shift = 0; shift < kMostBits && at_ != end_; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at_++);
    number |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool ProtobufReader::read_real() {
  if (end_ - at_ < static_cast<std::ptrdiff_t>(sizeof number_)) return false;
  std::memcpy(&number_, at_, sizeof number_);
  at_ += sizeof number_;
  kind_ = Kind::real;
  return true;
}

std::vector<std::uint64_t> packed_numbers(std::string_view bytes) {
  std::vector<std::uint64_t> numbers;
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  try {
    while (at != end) numbers.push_back(protozero::decode_varint(&at, end));
  } catch (const protozero::exception&) {
    return numbers;
  }
  return numbers;
}

ProtobufWriter& ProtobufWriter::add(std::uint32_t field, std::uint64_t number) {
  protozero::pbf_writer(bytes_).add_uint64(field, number);
  return *this;
}

ProtobufWriter& ProtobufWriter::add(std::uint32_t field, double number) {
  protozero::pbf_writer(bytes_).add_double(field, number);
  return *this;
}

ProtobufWriter& ProtobufWriter::add(std::uint32_t field, std::string_view bytes) {
  protozero::pbf_writer(bytes_).add_bytes(field, bytes.data(), bytes.size());
  return *this;
}

}  // namespace joulemap::formats
