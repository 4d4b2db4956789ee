// SPDX-License-Identifier: Apache-2.0
#include "formats/zstd.h"

#include <zstd.h>

#include <algorithm>

#include "base/check.h"

namespace joulemap::formats {

void ZstdCompressor::ContextDeleter::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

ZstdCompressor::ZstdCompressor() : context_(ZSTD_createCCtx()) {
  JOULEMAP_CHECK(context_ != nullptr, "zstd has no memory for its context");
}

std::string ZstdCompressor::compress(std::string_view uncompressed_text) {
  constexpr int kCompressionLevel = 3;  // zstd's default: higher levels gain little on blocks of a few kilobytes
  buffer_.resize(std::max(buffer_.size(), ZSTD_compressBound(uncompressed_text.size())));
  const std::size_t size = ZSTD_compressCCtx(context_.get(), buffer_.data(), buffer_.size(), uncompressed_text.data(),
                                             uncompressed_text.size(), kCompressionLevel);
  JOULEMAP_CHECK(ZSTD_isError(size) == 0, "zstd failed although its bound was kept");
  return buffer_.substr(0, size);
}

std::string zstd_compress(std::string_view uncompressed_text) { return ZstdCompressor().compress(uncompressed_text); }

std::optional<std::string> zstd_decompress(std::string_view compressed, std::size_t uncompressed_size) {
  std::string uncompressed_text(uncompressed_size, '\0');
  const std::size_t size =
      ZSTD_decompress(uncompressed_text.data(), uncompressed_text.size(), compressed.data(), compressed.size());
  if (ZSTD_isError(size) != 0 || size != uncompressed_size) return std::nullopt;
  return uncompressed_text;
}

}  // namespace joulemap::formats
