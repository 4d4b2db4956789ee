// SPDX-License-Identifier: Apache-2.0
//
// ChunkScanner: finds the whole chunks of a recording in order and skips everything else: the remains of a killed
// writer, a full disk or a flipped bit. After damage it searches for the next header with a correct checksum. It also
// searches inside the claimed extent of a broken chunk, because bytes may be missing there.
//
// Bounded for any input: at most one chunk in memory, and work proportional to the file size. Does not interpret the
// chunks. Owned by one reader; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "recording/byte_source.h"
#include "recording/chunk.h"

namespace joulemap::recording {

struct ScannedChunk {
  ChunkHeader header;
  std::string_view stored_payload;  // the payload as stored, checksum verified; valid until the next call
};

// Bytes between two whole chunks that belong to neither.
struct DamagedRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool is_at_end = false;  // no whole chunk follows: an interrupted writer
};

class ChunkScanner {
 public:
  // The source is borrowed. `begin_offset`: where a chunk begins.
  explicit ChunkScanner(ByteSource& source, std::uint64_t begin_offset = 0)
      : source_(&source), search_offset_(begin_offset) {}

  // The next whole chunk; nullopt at the end. Fails only if the source fails.
  Result<std::optional<ScannedChunk>> next();

  std::uint64_t chunk_offset() const { return chunk_offset_; }  // offset of the chunk that next() returned last

  // The bytes skipped before the chunk, or the end, that next() returned last.
  const std::optional<DamagedRange>& damaged_range() const { return damaged_range_; }

 private:
  Result<std::optional<std::uint64_t>> find_magic(std::uint64_t search_begin);
  Result<std::optional<ScannedChunk>> read_chunk_at(std::uint64_t offset);
  Result<bool> is_chunk_start(std::uint64_t offset);
  Result<std::uint64_t> find_offset_after_broken_chunk(std::uint64_t offset);
  void add_damaged_bytes(std::uint64_t begin, std::uint64_t end, bool is_at_end);

  ByteSource* source_;
  std::uint64_t search_offset_ = 0;  // where the search resumes
  std::uint64_t chunk_offset_ = 0;
  std::uint64_t failed_checksum_bytes_ = 0;  // payload bytes whose checksum was computed and did not match
  std::optional<DamagedRange> damaged_range_;
};

}  // namespace joulemap::recording
