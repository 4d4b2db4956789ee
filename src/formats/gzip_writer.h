// SPDX-License-Identifier: Apache-2.0
//
// A text as a gzip file, by ISA-L as the reader of gzip.h. Pure.
#pragma once

#include <string>
#include <string_view>

namespace joulemap::formats {

std::string gzip_bytes(std::string_view text);

}  // namespace joulemap::formats
