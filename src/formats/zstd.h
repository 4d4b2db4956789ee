// SPDX-License-Identifier: Apache-2.0
//
// The face of libzstd, which no other folder includes: whole pieces in memory. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace joulemap::formats {

std::string zstd_compress(std::string_view plain);

// Nothing when the bytes are no zstd frame, or do not become exactly plain_size bytes. Never allocates more than those,
// so the caller bounds what a hostile file can ask for.
std::optional<std::string> zstd_decompress(std::string_view compressed, std::size_t plain_size);

}  // namespace joulemap::formats
