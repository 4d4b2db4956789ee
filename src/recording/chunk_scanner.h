// SPDX-License-Identifier: Apache-2.0
//
// ChunkScanner: finds the whole chunks of a recording, one after another, and steps over everything else: what a killed
// writer, a full disk or a flipped bit has left. After damage it looks for the next header whose checksum is right,
// also inside of what a broken chunk claimed as its own, because bytes may be missing there.
//
// Bounded whatever the file says: no more than one chunk in memory, and the work is proportional to the file's size.
// Knows nothing of what chunks mean. Owner: one reader; one thread.
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
  std::string_view stored;  // the payload as it lies in the file, its checksum is right; valid until the next call
};

// Bytes between two whole chunks that belong to none.
struct Damage {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool at_end = false;  // nothing whole follows: a writer that was cut off
};

class ChunkScanner {
 public:
  explicit ChunkScanner(ByteSource& source) : source_(&source) {}  // borrowed

  // The next whole chunk; nothing at the end. Fails only when the source does.
  Result<std::optional<ScannedChunk>> next();

  std::uint64_t position() const { return position_; }  // of that chunk's first byte

  // What was stepped over to get to the chunk, or the end, that next() gave last.
  const std::optional<Damage>& damage() const { return damage_; }

 private:
  Result<std::optional<std::uint64_t>> find_magic(std::uint64_t from);
  Result<std::optional<ScannedChunk>> chunk_at(std::uint64_t offset);
  Result<bool> starts_chunk(std::uint64_t offset);
  Result<std::uint64_t> after_broken(std::uint64_t offset);
  void note_damage(std::uint64_t begin, std::uint64_t end, bool at_end);

  ByteSource* source_;
  std::uint64_t offset_ = 0;  // where to go on
  std::uint64_t position_ = 0;
  std::uint64_t wasted_ = 0;  // bytes of payloads that were checked in vain
  std::optional<Damage> damage_;
};

}  // namespace joulemap::recording
