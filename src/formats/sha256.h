// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4), by which others can check files of joulemap with `sha256sum`. Wraps libmd.
#pragma once

#include <string>
#include <string_view>

namespace joulemap::formats {

// The digest as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace joulemap::formats
