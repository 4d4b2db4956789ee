// SPDX-License-Identifier: Apache-2.0
//
// Wraps libzstd, which no other folder includes: compresses whole blocks in memory. Pure; any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct ZSTD_CCtx_s;

namespace joulemap::formats {

std::string zstd_compress(std::string_view uncompressed_text);

// Compresses many blocks: initializes zstd's context once, which takes as long as compressing a kilobyte. One thread.
class ZstdCompressor {
 public:
  ZstdCompressor();
  std::string compress(std::string_view uncompressed_text);

 private:
  struct ContextDeleter {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, ContextDeleter> context_;
  std::string buffer_;  // reused output buffer of the maximal compressed size
};

// Returns nullopt if the bytes are not a zstd frame or do not decompress to exactly uncompressed_size bytes. Never
// allocates more than that, so the caller bounds the memory that a hostile file can request.
std::optional<std::string> zstd_decompress(std::string_view compressed, std::size_t uncompressed_size);

}  // namespace joulemap::formats
