// SPDX-License-Identifier: Apache-2.0
#include "recording/recording_parts.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <iterator>
#include <memory>
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

struct FileWithRecordingId {
  std::string path;
  std::string id;
};

Result<std::string> read_recording_id(FileSource& file, const std::string& path) {
  ChunkScanner scanner(file);
  bool has_whole_chunk = false;
  while (true) {
    Result<std::optional<ScannedChunk>> chunk = scanner.next();
    if (!chunk) return std::move(chunk).error();
    if (!*chunk) break;
    has_whole_chunk = true;
    const Status readable = check_chunk_supported((*chunk)->header, path);
    if (!readable) return readable.error();
    if (!(*chunk)->header.has_type(ChunkType::source)) continue;
    const std::optional<std::string> payload = decompress_payload((*chunk)->header, (*chunk)->stored_payload);
    std::optional<DecodedSource> decoded = payload ? decode_source(*payload) : std::nullopt;
    if (decoded) return std::move(decoded->source.recording_id);
  }
  return has_whole_chunk ? source_definition_lost_error(path) : not_a_recording_error(path, file.size());
}

Result<std::string> read_recording_id(const RecordingFile& file) {
  if (!file.open_file) return recording_id_of_file(file.path);
  FileSource source(file.open_file);
  return read_recording_id(source, file.path);
}

// Compares the recording ID of a file with that of the first one. Ignores an unreadable part: its process was killed
// early, and reading it reports that.
Status check_same_recording(const RecordingFile& file, std::optional<FileWithRecordingId>& first_file) {
  if (file.is_part && !file.open_file && check_part_file(file.path)) return Done{};
  Result<std::string> id = read_recording_id(file);
  if (!id && file.is_part && id.error().code != ErrorCode::unsupported) return Done{};
  if (!id) return std::move(id).error();
  if (!first_file) {
    first_file = FileWithRecordingId{file.path, *id};
  } else if (first_file->id != *id) {
    return different_recordings_error(first_file->path, first_file->id, file.path, *id);
  }
  return Done{};
}

// Files of a recording that are held open at once. Programs may have few descriptors (1024 is usual); further parts are
// opened when they are read.
constexpr std::size_t kMaxOpenFiles = 256;
// Each try that fails saw a join in progress, which takes the listed parts away once.
constexpr int kMaxListingTries = 100;

// Opens a file that was found. Returns false if it is gone: the recorder has joined the parts meanwhile. A file that
// cannot be opened for another reason stays in the list; reading it reports the reason.
bool add_open_file(RecordingFile file, std::vector<RecordingFile>& files) {
  if (files.size() < kMaxOpenFiles) {
    Result<std::shared_ptr<const OpenFile>> open_file = OpenFile::open(file.path);
    if (!open_file && open_file.error().code == ErrorCode::not_found) return false;
    if (open_file) file.open_file = std::move(*open_file);
  }
  files.push_back(std::move(file));
  return true;
}

// Returns nullopt if the recorder joins the parts meanwhile.
Result<std::optional<std::vector<RecordingFile>>> list_part_files(const std::string& folder) {
  Result<ListedParts> listed = list_parts(folder);
  if (!listed && listed.error().code == ErrorCode::not_found) return std::optional<std::vector<RecordingFile>>();
  if (!listed) return std::move(listed).error();
  std::vector<RecordingFile> files;
  if (listed->parts.empty()) return std::optional(std::move(files));
  for (std::string& part : listed->parts) {
    if (!add_open_file({std::move(part), true}, files)) return std::optional<std::vector<RecordingFile>>();
  }
  for (std::string& skipped_name : listed->skipped_names) {
    const std::optional<Error> fault = check_part_file(skipped_name);
    if (fault && fault->code == ErrorCode::not_found) return std::optional<std::vector<RecordingFile>>();
    files.push_back({std::move(skipped_name), true});
  }
  return std::optional(std::move(files));
}

// Returns the files of the recording that a path names, or nullopt if the recorder joins its parts meanwhile. Lists the
// parts before it looks for the joined file, which appears before the first part is removed.
Result<std::optional<std::vector<RecordingFile>>> try_list_recording_files(const std::string& path) {
  if (is_folder(path)) {
    Result<std::optional<std::vector<RecordingFile>>> parts = list_part_files(path);
    if (parts && *parts && (*parts)->empty()) {
      return Error{ErrorCode::not_found, fmt::format("{} is a folder without parts of a recording", path),
                   "pass a .joule file"};
    }
    return parts;
  }
  const std::string folder = recording_folder(path);
  std::vector<RecordingFile> parts;
  if (is_folder(folder)) {
    Result<std::optional<std::vector<RecordingFile>>> part_files = list_part_files(folder);
    if (!part_files || !*part_files) return part_files;
    parts = std::move(**part_files);
  }
  std::vector<RecordingFile> files;
  static_cast<void>(add_open_file({path, false}, files));
  files.insert(files.end(), std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
  if (files.empty()) files.push_back({path, false});  // opening the missing file returns the most specific error
  return std::optional(std::move(files));
}

Result<std::vector<RecordingFile>> find_recording_files(const std::string& path) {
  for (int attempt = 0; attempt < kMaxListingTries; ++attempt) {
    Result<std::optional<std::vector<RecordingFile>>> files = try_list_recording_files(path);
    if (!files) return std::move(files).error();
    if (*files) return std::move(**files);
  }
  return Error{ErrorCode::io, fmt::format("the parts of {} change while they are listed", path),
               "wait until its recorder has ended"};
}

Error add_left_over_parts_remedy(Error error, const std::string& path) {
  error.remedy = fmt::format(
      "{0}.d contains an interrupted recording that was not joined: pass {0}.d to read it, or move it to read {0}",
      path);
  return error;
}

}  // namespace

std::string recording_folder(const std::string& path) { return resolve_links(path) + ".d"; }

bool starts_with_recording_magic(const std::string& path) {
  const Result<std::string> start = read_file_start(path, kChunkMagic.size());
  return start && *start == kChunkMagic;
}

std::string sanitize_for_file_name(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    const bool is_safe_character =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
    if (!is_safe_character) c = '_';
  }
  return name.substr(0, 100);
}

std::string recording_part_path(const std::string& folder, const RecordingSource& source) {
  return fmt::format("{}/{}-{}-{}{}", folder, sanitize_for_file_name(source.boot_id), source.pid, source.started_ns,
                     kPartSuffix);
}

Result<std::string> recording_id_of_file(const std::string& path) {
  Result<FileSource> file = FileSource::open(path);
  if (!file) return std::move(file).error();
  return read_recording_id(*file, path);
}

Result<std::vector<RecordingFile>> open_recording(std::span<const std::string> paths) {
  std::vector<RecordingFile> recording_files;
  std::optional<FileWithRecordingId> first_file;
  for (const std::string& path : paths) {
    Result<std::vector<RecordingFile>> files = find_recording_files(path);
    if (!files) return files;
    const bool has_file_and_parts = !files->front().is_part && files->size() > 1;
    for (const RecordingFile& file : *files) {
      Status same_recording_status = check_same_recording(file, first_file);
      if (!same_recording_status && has_file_and_parts && file.is_part &&
          same_recording_status.error().code == ErrorCode::usage) {
        return add_left_over_parts_remedy(std::move(same_recording_status).error(), path);
      }
      if (!same_recording_status) return std::move(same_recording_status).error();
      recording_files.push_back(file);
    }
  }
  return recording_files;
}

}  // namespace joulemap::recording
