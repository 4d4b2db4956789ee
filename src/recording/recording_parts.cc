// SPDX-License-Identifier: Apache-2.0
#include "recording/recording_parts.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <optional>

#include "base/output_file.h"
#include "base/small_file.h"
#include "recording/chunk.h"
#include "recording/part_list.h"
#include "recording/recording_decoder.h"

namespace joulemap::recording {
namespace {

bool is_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

struct IdentifiedFile {
  std::string path;
  std::string id;
};

// Compares the recording ID of a file with that of the first one. Ignores an unreadable part: its process was killed
// early, and reading it reports that.
Status check_same_recording(const RecordingFile& file, std::optional<IdentifiedFile>& first) {
  if (file.is_part && check_part_file(file.path)) return Done{};
  Result<std::string> id = recording_id_of(file.path);
  if (!id && file.is_part && id.error().code != ErrorCode::unsupported) return Done{};
  if (!id) return std::move(id).error();
  if (!first) {
    first = IdentifiedFile{file.path, *id};
  } else if (first->id != *id) {
    return different_recordings_error(first->path, first->id, file.path, *id);
  }
  return Done{};
}

Result<std::vector<RecordingFile>> parts_in(const std::string& folder) {
  Result<ListedParts> listed = list_parts(folder);
  if (!listed) return std::move(listed).error();
  std::vector<RecordingFile> files;
  if (listed->parts.empty()) return files;
  for (std::string& part : listed->parts) files.push_back({std::move(part), true});
  for (std::string& other : listed->skipped) files.push_back({std::move(other), true});
  return files;
}

// Returns the files of the recording that a path names.
Result<std::vector<RecordingFile>> resolve(const std::string& path) {
  if (is_folder(path)) {
    Result<std::vector<RecordingFile>> parts = parts_in(path);
    if (parts && parts->empty()) {
      return Error{ErrorCode::not_found, fmt::format("{} is a folder without parts of a recording", path),
                   "pass a .joule file"};
    }
    return parts;
  }
  std::vector<RecordingFile> files;
  if (file_exists(path)) files.push_back({path, false});
  const std::string folder = recording_folder(path);
  if (is_folder(folder)) {
    Result<std::vector<RecordingFile>> parts = parts_in(folder);
    if (!parts) return parts;
    files.insert(files.end(), parts->begin(), parts->end());
  }
  if (files.empty()) files.push_back({path, false});  // opening the missing file returns the most specific error
  return files;
}

Error left_over_parts(Error error, const std::string& path) {
  error.remedy = fmt::format(
      "{0}.d contains an interrupted recording that was not joined: pass {0}.d to read it, or move it to read {0}",
      path);
  return error;
}

}  // namespace

std::string recording_folder(const std::string& path) { return resolve_links(path) + ".d"; }

bool has_recording_magic(const std::string& path) {
  const Result<std::string> start = read_file_start(path, kChunkMagic.size());
  return start && *start == kChunkMagic;
}

std::string as_file_name(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
    if (!plain) c = '_';
  }
  return name.substr(0, 100);
}

std::string recording_part_path(const std::string& folder, const RecordingSource& source) {
  return fmt::format("{}/{}-{}-{}{}", folder, as_file_name(source.boot_id), source.pid, source.started_ns, kPartSuffix);
}

Result<std::string> recording_id_of(const std::string& path) {
  Result<FileSource> file = FileSource::open(path);
  if (!file) return std::move(file).error();
  ChunkScanner scanner(*file);
  bool any_whole = false;
  while (true) {
    Result<std::optional<ScannedChunk>> chunk = scanner.next();
    if (!chunk) return std::move(chunk).error();
    if (!*chunk) break;
    any_whole = true;
    const Status readable = check_readable((*chunk)->header, path);
    if (!readable) return readable.error();
    if (!(*chunk)->header.is(ChunkType::source)) continue;
    const std::optional<std::string> payload = decompress_payload((*chunk)->header, (*chunk)->stored);
    std::optional<DecodedSource> decoded = payload ? decode_source(*payload) : std::nullopt;
    if (decoded) return std::move(decoded->source.recording_id);
  }
  return any_whole ? source_definition_lost_error(path) : not_a_recording_error(path, file->size());
}

Result<std::vector<RecordingFile>> open_recording(std::span<const std::string> paths) {
  std::vector<RecordingFile> all;
  std::optional<IdentifiedFile> first;
  for (const std::string& path : paths) {
    Result<std::vector<RecordingFile>> files = resolve(path);
    if (!files) return files;
    const bool both = !files->front().is_part && files->size() > 1;
    for (const RecordingFile& file : *files) {
      Status same = check_same_recording(file, first);
      if (!same && both && file.is_part && same.error().code == ErrorCode::usage) {
        return left_over_parts(std::move(same).error(), path);
      }
      if (!same) return std::move(same).error();
      all.push_back(file);
    }
  }
  return all;
}

}  // namespace joulemap::recording
