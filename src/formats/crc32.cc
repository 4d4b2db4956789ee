// SPDX-License-Identifier: Apache-2.0
#include "formats/crc32.h"

#include <zlib.h>

namespace joulemap::formats {

std::uint32_t crc32(std::string_view bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace joulemap::formats
