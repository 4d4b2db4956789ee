// SPDX-License-Identifier: Apache-2.0
//
// Chunk: the unit in which a recording is written, lost and recovered. A .joule file is a sequence of chunks without a
// file header that could be lost. Each chunk is self-contained: a magic number, the format version, sizes, and
// checksums of its header and payload. docs/reference/recording-format.md specifies the bytes. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/zstd.h"

namespace joulemap::recording {

inline constexpr std::uint8_t kFormatMajor = 1;  // readers reject files of another major version
inline constexpr std::uint8_t kFormatMinor = 5;  // readers of an older minor version skip what they do not know

inline constexpr std::string_view kChunkMagic = "\xB5J\r\n";
inline constexpr std::size_t kChunkHeaderSize = 24;
inline constexpr std::size_t kMaxPayloadBytes = (std::size_t{1} << 24) - 1;  // compressed and uncompressed
inline constexpr std::size_t kMaxSources = std::size_t{1} << 16;
inline constexpr std::uint16_t kPartSourceNumber = 0;  // number of the single source of a part

enum class ChunkType : std::uint8_t {
  source = 1,         // identity of the writer and its channels; required
  samples = 2,        // samples, and the clock pairs of that time; required
  events = 3,         // marks and metrics
  facts = 4,          // environment and calibrations
  end = 5,            // how the recording ended
  diagnostics = 6,    // losses that were found when parts were joined
  activity = 7,       // scopes, kernels, steps and their tallies
  kernel_powers = 8,  // powers of kernel classes, from the kernel library
  engine_steps = 9,   // forward steps of a serving engine and their requests
};
bool is_known_chunk_type(std::uint8_t type);

struct ChunkHeader {
  std::uint8_t major = kFormatMajor;
  std::uint8_t minor = kFormatMinor;
  std::uint8_t type = 0;                // a ChunkType, or a type added by a newer version
  bool is_required = false;             // a reader that does not support the type must stop
  bool compressed = false;              // the payload is a zstd frame
  std::uint16_t source = 0;             // number of the source within the file
  std::uint32_t stored_size = 0;        // size of the payload in the file, bytes
  std::uint32_t uncompressed_size = 0;  // size of the decompressed payload, bytes
  std::uint32_t payload_crc = 0;        // CRC of the payload as stored

  bool has_type(ChunkType chunk_type) const { return type == static_cast<std::uint8_t>(chunk_type); }
};

std::string encode_chunk_header(const ChunkHeader& header);

// Returns nullopt if the magic or the header's checksum is wrong, or for fewer than kChunkHeaderSize bytes.
std::optional<ChunkHeader> parse_chunk_header(std::string_view bytes);

// Builds a whole chunk, compressed if that is shorter. The payload is at most kMaxPayloadBytes bytes.
std::string make_chunk(ChunkType type, std::uint16_t source, std::string_view payload);
std::string make_chunk(ChunkType type, std::uint16_t source, std::string_view payload,
                       formats::ZstdCompressor& compressor);

// The same chunk with another source number; the stored payload is unchanged.
std::string renumber_chunk_source(ChunkHeader header, std::uint16_t source, std::string_view stored_payload);

// Decompresses the payload of a chunk whose checksum was verified. Returns nullopt if that fails, or if its size
// differs from the header.
std::optional<std::string> decompress_payload(const ChunkHeader& header, std::string_view stored_payload);

}  // namespace joulemap::recording
