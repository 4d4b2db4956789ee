// SPDX-License-Identifier: Apache-2.0
#include "recording/recording_reader.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "recording/part_list.h"
#include "recording/recording_decoder.h"

namespace joulemap::recording {
namespace {

// Opens a file. A part that cannot be opened becomes a diagnostic and is skipped (nullopt).
Result<std::optional<FileSource>> open_recording_file(RecordingDecoder& decoder, const RecordingFile& file) {
  if (file.open_file) return std::optional(FileSource(file.open_file));
  const std::optional<Error> fault = file.is_part ? check_part_file(file.path) : std::nullopt;
  if (fault) decoder.add_diagnostic(skipped_part_diagnostic(*fault));
  if (fault) return std::optional<FileSource>();
  Result<FileSource> file_source = FileSource::open(file.path);
  if (file_source) return std::optional(std::move(*file_source));
  if (!file.is_part) return std::move(file_source).error();
  decoder.add_diagnostic({"recording_part_unreadable", 1, file_source.error().message, "make it readable (chmod u+r)"});
  return std::optional<FileSource>();
}

// A file that reports, at each read, the fraction of all files that was read.
class ProgressReportingSource final : public ByteSource {
 public:
  ProgressReportingSource(ByteSource& source, std::uint64_t earlier_file_bytes, std::uint64_t total,
                          const ProgressCallback& on_progress)
      : source_(source),
        bytes_of_earlier_files_(earlier_file_bytes),
        bytes_of_all_files_(total),
        on_progress_(on_progress) {}
  Result<std::string_view> read_at(std::uint64_t offset, std::size_t size) override {
    if (bytes_of_all_files_ > 0)
      report_progress(on_progress_,
                      static_cast<double>(bytes_of_earlier_files_ + offset) / static_cast<double>(bytes_of_all_files_));
    return source_.read_at(offset, size);
  }
  std::uint64_t size() const override { return source_.size(); }

 private:
  ByteSource& source_;
  std::uint64_t bytes_of_earlier_files_;
  std::uint64_t bytes_of_all_files_;
  const ProgressCallback& on_progress_;
};

std::uint64_t total_file_bytes(std::span<const RecordingFile> files) {
  std::uint64_t total = 0;
  for (const RecordingFile& file : files) {
    if (file.open_file) total += file.open_file->size;
    if (file.open_file) continue;
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(file.path, error);
    if (!error) total += bytes;
  }
  return total;
}

}  // namespace

Result<RecordingSummary> read_recording(ByteSource& bytes, std::string_view name, RecordingVisitor& visitor) {
  RecordingDecoder decoder(visitor);
  const Status read_status = decoder.read(bytes, name);
  if (!read_status) return read_status.error();
  return decoder.finish();
}

Result<RecordingSummary> read_recording(const std::string& path, RecordingVisitor& visitor) {
  const RecordingFile file{path, false};
  return read_recording(std::span(&file, 1), visitor);
}

Result<RecordingSummary> read_recording(std::span<const RecordingFile> files, RecordingVisitor& visitor,
                                        const ProgressCallback& on_progress) {
  RecordingDecoder decoder(visitor);
  const std::uint64_t total = on_progress ? total_file_bytes(files) : 0;
  std::uint64_t earlier_file_bytes = 0;
  std::optional<Error> first_error;
  bool has_read_file = false;
  for (const RecordingFile& file : files) {
    Result<std::optional<FileSource>> file_source = open_recording_file(decoder, file);
    if (!file_source) return std::move(file_source).error();
    if (!*file_source) continue;
    ProgressReportingSource progress_source(**file_source, earlier_file_bytes, total, on_progress);
    const Status read_status = decoder.read(progress_source, file.path);
    earlier_file_bytes += progress_source.size();
    has_read_file = has_read_file || read_status.has_value();
    if (read_status) continue;
    if (!file.is_part || read_status.error().code != ErrorCode::malformed) return read_status.error();
    decoder.add_diagnostic({"recording_part_unreadable", 1, read_status.error().message, {}});
    if (!first_error) first_error = read_status.error();
  }
  if (has_read_file) return decoder.finish();
  if (first_error) return *first_error;
  return Error{ErrorCode::not_found, "no recording given", "pass a .joule file"};
}

}  // namespace joulemap::recording
