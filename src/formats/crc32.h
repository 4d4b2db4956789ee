// SPDX-License-Identifier: Apache-2.0
//
// CRC-32 as in zlib, gzip and PNG. Most languages have it in their standard library, so other programs can verify
// joulemap's files.
#pragma once

#include <cstdint>
#include <string_view>

namespace joulemap::formats {

std::uint32_t crc32(std::string_view bytes);

}  // namespace joulemap::formats
