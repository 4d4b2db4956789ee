// SPDX-License-Identifier: Apache-2.0
#include "recording/recording_reader.h"

#include <optional>

#include "recording/recording_decoder.h"

namespace joulemap::recording {
namespace {

Status read_file(RecordingDecoder& decoder, const std::string& path) {
  Result<FileSource> file = FileSource::open(path);
  if (!file) return std::move(file).error();
  return decoder.read(*file, path);
}

}  // namespace

Result<RecordingSummary> read_recording(ByteSource& bytes, std::string_view name, RecordingVisitor& visitor) {
  RecordingDecoder decoder(visitor);
  const Status read = decoder.read(bytes, name);
  if (!read) return read.error();
  return decoder.finish();
}

Result<RecordingSummary> read_recording(const std::string& path, RecordingVisitor& visitor) {
  const RecordingFile file{path, false};
  return read_recording(std::span(&file, 1), visitor);
}

Result<RecordingSummary> read_recording(std::span<const RecordingFile> files, RecordingVisitor& visitor) {
  RecordingDecoder decoder(visitor);
  std::optional<Error> first_error;
  bool any_read = false;
  for (const RecordingFile& file : files) {
    const Status read = read_file(decoder, file.path);
    any_read = any_read || read.has_value();
    if (read) continue;
    if (!file.is_part || read.error().code != ErrorCode::malformed) return read.error();
    decoder.add_diagnostic({"recording_part_unreadable", 1, read.error().message, {}});
    if (!first_error) first_error = read.error();
  }
  if (any_read) return decoder.finish();
  if (first_error) return *first_error;
  return Error{ErrorCode::not_found, "no file of a recording was given", "name a .joule file"};
}

}  // namespace joulemap::recording
