// SPDX-License-Identifier: Apache-2.0
#include "formats/protobuf.h"

#include <cstddef>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>

namespace joulemap::formats {

const char* decode_varint_bytewise(const char* position, const char* end, std::uint64_t& number) {
  constexpr int kMaxBits = 64;
  std::uint64_t sum = 0;
  for (int shift = 0; shift < kMaxBits && position != end; shift += 7) {
    const auto byte = static_cast<unsigned char>(*position++);
    sum |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) {
      number = sum;
      return position;
    }
  }
  return nullptr;
}

std::vector<std::uint64_t> decode_packed_varints(std::string_view bytes) {
  std::vector<std::uint64_t> numbers;
  const char* position = bytes.data();
  const char* const end = position + bytes.size();
  try {
    while (position != end) numbers.push_back(protozero::decode_varint(&position, end));
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

ProtobufWriter& ProtobufWriter::add(std::uint32_t field, float number) {
  protozero::pbf_writer(bytes_).add_float(field, number);
  return *this;
}

ProtobufWriter& ProtobufWriter::add_packed(std::uint32_t field, std::span<const std::uint64_t> numbers) {
  protozero::pbf_writer(bytes_).add_packed_uint64(field, numbers.begin(), numbers.end());
  return *this;
}

ProtobufWriter& ProtobufWriter::add_packed(std::uint32_t field, std::span<const double> numbers) {
  protozero::pbf_writer(bytes_).add_packed_double(field, numbers.begin(), numbers.end());
  return *this;
}

ProtobufWriter& ProtobufWriter::add(std::uint32_t field, std::string_view bytes) {
  protozero::pbf_writer(bytes_).add_bytes(field, bytes.data(), bytes.size());
  return *this;
}

}  // namespace joulemap::formats
