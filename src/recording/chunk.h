// SPDX-License-Identifier: Apache-2.0
//
// Chunk: the unit a recording is written, lost and found in. A .joule file is chunks one after another and nothing
// else; there is no header of the file that could be lost. Each chunk stands alone: a magic to find it by, the version
// that wrote it, sizes, a checksum of its own header and one of its payload. docs/recording-format.md has the bytes.
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/zstd.h"

namespace joulemap::recording {

inline constexpr std::uint8_t kFormatMajor = 1;  // readers of another major version cannot read it
inline constexpr std::uint8_t kFormatMinor = 2;  // they can, and skip what they do not know

inline constexpr std::string_view kChunkMagic = "\xB5J\r\n";
inline constexpr std::size_t kChunkHeaderSize = 24;
inline constexpr std::size_t kLargestPayload = (std::size_t{1} << 24) - 1;  // before and after compression
inline constexpr std::size_t kMostSources = std::size_t{1} << 16;
inline constexpr std::uint16_t kOnlySource = 0;  // of a part, which has no other

enum class ChunkType : std::uint8_t {
  source = 1,    // who wrote it, and its channels; required
  samples = 2,   // and the clock pairs of the same time; required
  events = 3,    // marks and metrics
  facts = 4,     // environment and calibrations
  end = 5,       // how it ended
  notes = 6,     // diagnostics: what was lost when recordings were joined
  activity = 7,  // places, kernels, steps and their tallies
  powers = 8,    // of classes of kernels: what the kernel library knew
};
bool is_known(std::uint8_t type);

struct ChunkHeader {
  std::uint8_t major = kFormatMajor;
  std::uint8_t minor = kFormatMinor;
  std::uint8_t type = 0;          // a ChunkType, or what a newer version has added
  bool required = false;          // a reader that does not know the type must not go on
  bool compressed = false;        // the payload is a zstd frame
  std::uint16_t source = 0;       // whose it is: a number within the file
  std::uint32_t stored_size = 0;  // of the payload in the file
  std::uint32_t plain_size = 0;   // of the payload once decompressed
  std::uint32_t payload_crc = 0;  // of the payload as stored

  bool is(ChunkType known) const { return type == static_cast<std::uint8_t>(known); }
};

std::string to_bytes(const ChunkHeader& header);

// Nothing when the magic, the checksum or the sizes are wrong; needs kChunkHeaderSize bytes.
std::optional<ChunkHeader> parse_chunk_header(std::string_view bytes);

// A whole chunk, compressed where that is shorter. The payload is at most kLargestPayload bytes.
std::string make_chunk(ChunkType type, std::uint16_t source, std::string_view payload);
std::string make_chunk(ChunkType type, std::uint16_t source, std::string_view payload,
                       formats::ZstdCompressor& compressor);

// The same chunk as another source's; its payload stays as it was stored.
std::string with_source(ChunkHeader header, std::uint16_t source, std::string_view stored);

// The payload of a chunk whose checksum was right. Nothing when it does not decompress to what the header says.
std::optional<std::string> payload_of(const ChunkHeader& header, std::string_view stored);

}  // namespace joulemap::recording
