// SPDX-License-Identifier: Apache-2.0
//
// Compresses a text to the bytes of a gzip file, with ISA-L. Pure.
#pragma once

#include <string>
#include <string_view>

namespace joulemap::formats {

std::string gzip_compress(std::string_view text);

}  // namespace joulemap::formats
