// SPDX-License-Identifier: Apache-2.0
// unity: alone (cmake/unity_groups.py), so that only programs that call these functions link ISA-L
#include "formats/tfrecord.h"

#include <isa-l/crc.h>

#include <bit>

namespace joulemap::formats {
namespace {

template <class Number>
void append_little_endian(std::string& out, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) out += static_cast<char>(number >> (8 * i) & 0xffU);
}

// TensorFlow masks checksums, because a CRC over bytes that contain their own CRC detects nothing.
std::uint32_t mask_crc(std::uint32_t crc) {
  constexpr std::uint32_t kMaskDelta = 0xa282ead8;
  return std::rotr(crc, 15) + kMaskDelta;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  auto* const data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));  // input is only read
  return ~::crc32_iscsi(data, static_cast<int>(bytes.size()), 0xffffffffU);
}

void append_tfrecord(std::string& file, std::string_view record) {
  const std::size_t begin = file.size();
  append_little_endian(file, static_cast<std::uint64_t>(record.size()));
  append_little_endian(file, mask_crc(crc32c(std::string_view(file).substr(begin))));
  file += record;
  append_little_endian(file, mask_crc(crc32c(record)));
}

}  // namespace joulemap::formats
