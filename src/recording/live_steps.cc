// SPDX-License-Identifier: Apache-2.0
#include "recording/live_steps.h"

#include <algorithm>

#include "recording/byte_source.h"
#include "recording/chunk_scanner.h"
#include "recording/part_list.h"
#include "recording/record_codec.h"

namespace joulemap::recording {

void LiveSteps::read_appended_chunks(const std::string& path, PartProgress& part) {
  Result<FileSource> file = FileSource::open(path);
  if (!file || file->size() <= part.read_until_offset) return;
  ChunkScanner scanner(*file, part.read_until_offset);
  while (true) {
    const Result<std::optional<ScannedChunk>> chunk = scanner.next();
    if (!chunk || !*chunk) return;  // the rest is being written
    part.read_until_offset = scanner.chunk_offset() + kChunkHeaderSize + (*chunk)->header.stored_size;
    if (!(*chunk)->header.has_type(ChunkType::events)) continue;
    const std::optional<std::string> payload = decompress_payload((*chunk)->header, (*chunk)->stored_payload);
    const std::optional<EventBatch> batch = payload ? decode_events(*payload) : std::nullopt;
    if (!batch) continue;
    for (const Mark& mark : batch->marks) {
      if (mark.kind == MarkKind::step) ++part.step_count;
      if (mark.kind == MarkKind::evaluation) part.evaluation_step_count += mark.id;
      if (mark.kind == MarkKind::step_retraction) {
        part.step_count -= std::min(part.step_count, mark.id);
        part.evaluation_step_count = std::min(part.evaluation_step_count, part.step_count);
      }
    }
  }
}

std::uint64_t LiveSteps::count_steps() {
  const Result<ListedParts> listed = list_parts(folder_);
  std::uint64_t max_step_count = 0;
  if (!listed) return max_step_count;
  for (const std::string& path : listed->parts) {
    PartProgress& part = part_progress_[path];
    read_appended_chunks(path, part);
    max_step_count = std::max(max_step_count, part.step_count - std::min(part.step_count, part.evaluation_step_count));
  }
  return max_step_count;
}

}  // namespace joulemap::recording
