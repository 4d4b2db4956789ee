// SPDX-License-Identifier: Apache-2.0
//
// CRC-32 as zlib, gzip and PNG have it: in the standard library of most languages, so that others can check our files.
#pragma once

#include <cstdint>
#include <string_view>

namespace joulemap::formats {

std::uint32_t crc32(std::string_view bytes);

}  // namespace joulemap::formats
