// SPDX-License-Identifier: Apache-2.0
#include "recording/chunk.h"

#include "base/check.h"
#include "formats/crc32.h"
#include "formats/zstd.h"

namespace joulemap::recording {
namespace {

constexpr std::uint8_t kRequiredChunkFlag = 1;
constexpr std::uint8_t kCompressedChunkFlag = 2;
constexpr std::size_t kChecksummedHeaderBytes = kChunkHeaderSize - 4;

void append_little_endian(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i, value >>= 8) out.push_back(static_cast<char>(value & 0xFF));
}

std::uint32_t read_little_endian(std::string_view bytes, std::size_t offset, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  return value;
}

}  // namespace

bool is_known_chunk_type(std::uint8_t type) {
  return type >= static_cast<std::uint8_t>(ChunkType::source) &&
         type <= static_cast<std::uint8_t>(ChunkType::engine_steps);
}

std::string encode_chunk_header(const ChunkHeader& header) {
  const int flags = (header.is_required ? kRequiredChunkFlag : 0) | (header.compressed ? kCompressedChunkFlag : 0);
  std::string out(kChunkMagic);
  append_little_endian(out, header.major, 1);
  append_little_endian(out, header.minor, 1);
  append_little_endian(out, header.type, 1);
  append_little_endian(out, static_cast<unsigned>(flags), 1);
  append_little_endian(out, header.source, 2);
  append_little_endian(out, header.stored_size, 3);
  append_little_endian(out, header.uncompressed_size, 3);
  append_little_endian(out, header.payload_crc, 4);
  append_little_endian(out, formats::crc32(out), 4);
  return out;
}

std::optional<ChunkHeader> parse_chunk_header(std::string_view bytes) {
  if (bytes.size() < kChunkHeaderSize || !bytes.starts_with(kChunkMagic)) return std::nullopt;
  if (formats::crc32(bytes.substr(0, kChecksummedHeaderBytes)) != read_little_endian(bytes, 20, 4)) return std::nullopt;
  const auto flags = static_cast<std::uint8_t>(bytes[7]);
  ChunkHeader header;
  header.major = static_cast<std::uint8_t>(bytes[4]);
  header.minor = static_cast<std::uint8_t>(bytes[5]);
  header.type = static_cast<std::uint8_t>(bytes[6]);
  header.is_required = (flags & kRequiredChunkFlag) != 0;
  header.compressed = (flags & kCompressedChunkFlag) != 0;
  header.source = static_cast<std::uint16_t>(read_little_endian(bytes, 8, 2));
  header.stored_size = read_little_endian(bytes, 10, 3);
  header.uncompressed_size = read_little_endian(bytes, 13, 3);
  header.payload_crc = read_little_endian(bytes, 16, 4);
  return header;
}

std::string make_chunk(ChunkType type, std::uint16_t source, std::string_view payload) {
  formats::ZstdCompressor compressor;
  return make_chunk(type, source, payload, compressor);
}

std::string make_chunk(ChunkType type, std::uint16_t source, std::string_view payload,
                       formats::ZstdCompressor& compressor) {
  JOULEMAP_CHECK(payload.size() <= kMaxPayloadBytes, "a chunk larger than its size field can say");
  const std::string compressed = compressor.compress(payload);
  ChunkHeader header;
  header.type = static_cast<std::uint8_t>(type);
  header.is_required = type == ChunkType::source || type == ChunkType::samples;
  header.compressed = compressed.size() < payload.size();
  header.uncompressed_size = static_cast<std::uint32_t>(payload.size());
  return renumber_chunk_source(header, source, header.compressed ? std::string_view(compressed) : payload);
}

std::string renumber_chunk_source(ChunkHeader header, std::uint16_t source, std::string_view stored_payload) {
  header.source = source;
  header.stored_size = static_cast<std::uint32_t>(stored_payload.size());
  header.payload_crc = formats::crc32(stored_payload);
  return encode_chunk_header(header).append(stored_payload);
}

std::optional<std::string> decompress_payload(const ChunkHeader& header, std::string_view stored_payload) {
  if (header.compressed) return formats::zstd_decompress(stored_payload, header.uncompressed_size);
  if (stored_payload.size() != header.uncompressed_size) return std::nullopt;
  return std::string(stored_payload);
}

}  // namespace joulemap::recording
