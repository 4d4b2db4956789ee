// SPDX-License-Identifier: Apache-2.0
//
// The face of libzstd, which no other folder includes: whole pieces in memory. Pure; any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct ZSTD_CCtx_s;

namespace joulemap::formats {

std::string zstd_compress(std::string_view plain);

// The same for many pieces: its memory is made ready once, which takes as long as compressing a kilobyte. One thread.
class ZstdCompressor {
 public:
  ZstdCompressor();
  std::string compress(std::string_view plain);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::string room_;  // what a piece may take at most; used again
};

// Nothing when the bytes are no zstd frame, or do not become exactly plain_size bytes. Never allocates more than those,
// so the caller bounds what a hostile file can ask for.
std::optional<std::string> zstd_decompress(std::string_view compressed, std::size_t plain_size);

}  // namespace joulemap::formats
