// SPDX-License-Identifier: Apache-2.0
#include "formats/protobuf.h"

#include <bit>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>

namespace joulemap::formats {
namespace {

// Of a field with a length that goes beyond the end: its content.
std::string_view content_until_the_end(std::string_view field) {
  try {
    protozero::pbf_reader reader(field.data(), field.size());
    if (!reader.next() || reader.wire_type() != protozero::pbf_wire_type::length_delimited) return {};
    const char* at = field.data() + field.size() - reader.length();
    const char* const end = field.data() + field.size();
    protozero::decode_varint(&at, end);
    return {at, static_cast<std::size_t>(end - at)};
  } catch (const protozero::exception&) {
    return {};
  }
}

}  // namespace

double ProtobufReader::real() const { return kind_ == Kind::real ? std::bit_cast<double>(number_) : 0; }

// The reader of protozero lives for one field: what is left is kept as a view, so that its header stays in here.
bool ProtobufReader::next() {
  kind_ = Kind::none;
  if (damaged_) return false;
  try {
    protozero::pbf_reader reader(rest_.data(), rest_.size());
    if (!reader.next()) return false;
    field_ = reader.tag();
    switch (reader.wire_type()) {
      case protozero::pbf_wire_type::varint:
        number_ = reader.get_uint64();
        kind_ = Kind::number;
        break;
      case protozero::pbf_wire_type::fixed64:
        number_ = reader.get_fixed64();
        kind_ = Kind::real;
        break;
      case protozero::pbf_wire_type::length_delimited: {
        const protozero::data_view view = reader.get_view();
        bytes_ = std::string_view(view.data(), view.size());
        kind_ = Kind::bytes;
        break;
      }
      default:
        reader.skip();
    }
    rest_ = rest_.substr(rest_.size() - reader.length());
    return true;
  } catch (const protozero::exception&) {
    damaged_ = true;
    cut_ = content_until_the_end(rest_);
    rest_ = {};
    return false;
  }
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
