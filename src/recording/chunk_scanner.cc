// SPDX-License-Identifier: Apache-2.0
#include "recording/chunk_scanner.h"

#include "formats/crc32.h"

namespace joulemap::recording {
namespace {
constexpr std::size_t kSearchStep_bytes = std::size_t{64} << 10;
}

Result<std::optional<ScannedChunk>> ChunkScanner::next() {
  damaged_range_.reset();
  const std::uint64_t begin = search_offset_;
  std::uint64_t search_begin = search_offset_;
  while (true) {
    Result<std::optional<std::uint64_t>> candidate = find_magic(search_begin);
    if (!candidate) return std::move(candidate).error();
    if (!*candidate) {
      add_damaged_bytes(begin, source_->size(), true);
      search_offset_ = source_->size();
      return std::optional<ScannedChunk>();
    }
    Result<std::optional<ScannedChunk>> chunk = read_chunk_at(**candidate);
    if (!chunk) return chunk;
    if (*chunk) {
      add_damaged_bytes(begin, **candidate, false);
      chunk_offset_ = **candidate;
      search_offset_ = **candidate + kChunkHeaderSize + (*chunk)->header.stored_size;
      return chunk;
    }
    Result<std::uint64_t> resume_offset = find_offset_after_broken_chunk(**candidate);
    if (!resume_offset) return std::move(resume_offset).error();
    search_begin = *resume_offset;
  }
}

void ChunkScanner::add_damaged_bytes(std::uint64_t begin, std::uint64_t end, bool is_at_end) {
  if (end > begin) damaged_range_ = DamagedRange{begin, end - begin, is_at_end};
}

Result<std::optional<std::uint64_t>> ChunkScanner::find_magic(std::uint64_t search_begin) {
  while (search_begin < source_->size()) {
    Result<std::string_view> block = source_->read_at(search_begin, kSearchStep_bytes);
    if (!block) return std::move(block).error();
    const std::size_t magic_position = block->find(kChunkMagic);
    if (magic_position != std::string_view::npos) return std::optional(search_begin + magic_position);
    if (block->size() < kChunkMagic.size()) break;
    search_begin += block->size() - (kChunkMagic.size() - 1);  // a magic may span two blocks
  }
  return std::optional<std::uint64_t>();
}

Result<std::optional<ScannedChunk>> ChunkScanner::read_chunk_at(std::uint64_t offset) {
  Result<std::string_view> start = source_->read_at(offset, kChunkHeaderSize);
  if (!start) return std::move(start).error();
  const std::optional<ChunkHeader> header = parse_chunk_header(*start);
  if (!header) return std::optional<ScannedChunk>();
  Result<std::string_view> stored_payload = source_->read_at(offset + kChunkHeaderSize, header->stored_size);
  if (!stored_payload) return std::move(stored_payload).error();
  if (stored_payload->size() < header->stored_size || formats::crc32(*stored_payload) != header->payload_crc) {
    failed_checksum_bytes_ += stored_payload->size();
    return std::optional<ScannedChunk>();
  }
  return std::optional(ScannedChunk{*header, *stored_payload});
}

Result<bool> ChunkScanner::is_chunk_start(std::uint64_t offset) {
  if (offset == source_->size()) return true;
  Result<std::string_view> start = source_->read_at(offset, kChunkHeaderSize);
  if (!start) return std::move(start).error();
  return parse_chunk_header(*start).has_value();
}

// Where to resume after a magic that does not start a whole chunk.
Result<std::uint64_t> ChunkScanner::find_offset_after_broken_chunk(std::uint64_t offset) {
  Result<std::string_view> start = source_->read_at(offset, kChunkHeaderSize);
  if (!start) return std::move(start).error();
  const std::optional<ChunkHeader> header = parse_chunk_header(*start);
  if (!header) return offset + 1;
  // Usual case: a flipped bit in the payload. The next chunk starts where this one ends, and bytes inside it that look
  // like a chunk are not one.
  const std::uint64_t claimed_end = offset + kChunkHeaderSize + header->stored_size;
  Result<bool> is_size_intact = is_chunk_start(claimed_end);
  if (!is_size_intact) return std::move(is_size_intact).error();
  if (*is_size_intact) return claimed_end;
  // Bytes are missing or were added. Searches inside the chunk, but with a limit: many headers that claim the same
  // megabytes would make the search quadratic.
  const bool is_search_limit_reached = failed_checksum_bytes_ > 8 * source_->size();
  return is_search_limit_reached ? claimed_end : offset + kChunkMagic.size();
}

}  // namespace joulemap::recording
