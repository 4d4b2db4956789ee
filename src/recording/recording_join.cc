// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/small_file.h"
#include "recording/chunk_file.h"
#include "recording/damage_log.h"
#include "recording/folder_claim.h"
#include "recording/part_list.h"
#include "recording/recording_decoder.h"
#include "recording/recording_parts.h"
#include "recording/sample_codec.h"
#include "recording/sampler_lock.h"

namespace joulemap::recording {
namespace {

// Time span of a chunk of samples in the joined file. Writers flush about every second, so that a crash loses no more;
// larger chunks compress better. In return, a damaged byte of the joined file loses this much of one process.
constexpr std::int64_t kJoinedSampleSpan_ns = 5 * kNanosecondsPerSecond;
constexpr std::size_t kWriteBufferBytes = std::size_t{1} << 20;

class RecordingJoiner {
 public:
  explicit RecordingJoiner(ChunkFile& out) : joined_file_(&out) {}

  Status add_file(const std::string& path);
  Status finish(Diagnostics& diagnostics);

 private:
  Status add_chunk(const ScannedChunk& chunk, std::uint64_t position);
  Status add_source_definition(const ScannedChunk& chunk, std::uint64_t position);
  Result<std::optional<std::uint16_t>> find_source_index(std::uint16_t number);
  Result<std::uint16_t> assign_source_number();
  Status add_samples(std::uint16_t source, const SampleBatch& batch);
  Status write_samples();
  Status buffer_chunk(const std::string& chunk);

  ChunkFile* joined_file_;
  std::string buffered_chunks_;  // chunks that wait for one large write
  DamageLog damage_log_;
  std::set<SourceIdentity> sources_in_earlier_files_;
  std::set<SourceIdentity> sources_in_file_;
  std::size_t assigned_number_count_ = 0;
  std::string recording_id_;
  std::string recording_id_path_;  // file that recording_id_ is from; empty until it is set

  // State of the current file.
  std::string current_path_;
  std::map<std::uint16_t, std::optional<std::uint16_t>>
      source_indexes_;  // by number in the current file; nullopt: an earlier file has that source

  std::map<std::uint16_t, std::int64_t> source_start_ns_;  // start time of each source in the joined file

  SampleBatch pending_samples_;
  std::uint16_t pending_source_ = 0;
};

Status RecordingJoiner::add_file(const std::string& path) {
  Result<FileSource> file = FileSource::open(path);
  if (!file) return std::move(file).error();
  current_path_ = path;
  source_indexes_.clear();
  damage_log_.begin_file(path);
  ChunkScanner scanner(*file);
  bool has_whole_chunk = false;
  while (true) {
    Result<std::optional<ScannedChunk>> chunk = scanner.next();
    if (!chunk) return std::move(chunk).error();
    if (!*chunk) break;
    has_whole_chunk = true;
    if (scanner.damaged_range()) damage_log_.add(*scanner.damaged_range());
    const Status chunk_status = add_chunk(**chunk, scanner.chunk_offset());
    if (!chunk_status) return chunk_status;
  }
  if (!has_whole_chunk) return not_a_recording_error(path, file->size());
  if (scanner.damaged_range()) damage_log_.add(*scanner.damaged_range());
  damage_log_.end_file();
  sources_in_earlier_files_.merge(sources_in_file_);
  sources_in_file_.clear();
  return write_samples();
}

Status RecordingJoiner::add_chunk(const ScannedChunk& chunk, std::uint64_t position) {
  const Status readable = check_chunk_supported(chunk.header, current_path_);
  if (!readable) return readable;
  if (chunk.header.has_type(ChunkType::source)) return add_source_definition(chunk, position);
  Result<std::optional<std::uint16_t>> source = find_source_index(chunk.header.source);
  if (!source) return std::move(source).error();
  if (!*source) return Done{};
  if (chunk.header.has_type(ChunkType::end)) {  // the last chunk of a source, also in the joined file
    const Status write_status = write_samples();
    if (!write_status) return write_status;
  }
  if (!chunk.header.has_type(ChunkType::samples))
    return buffer_chunk(renumber_chunk_source(chunk.header, **source, chunk.stored_payload));
  const std::optional<std::string> payload = decompress_payload(chunk.header, chunk.stored_payload);
  const std::optional<SampleBatch> batch = payload ? decode_samples(*payload) : std::nullopt;
  if (batch) {
    damage_log_.add_samples(**source, source_start_ns_[**source], batch->samples);
    return add_samples(**source, *batch);
  }
  damage_log_.add({position, kChunkHeaderSize + chunk.header.stored_size, false});
  return Done{};
}

Status RecordingJoiner::add_source_definition(const ScannedChunk& chunk, std::uint64_t position) {
  const std::optional<std::string> payload = decompress_payload(chunk.header, chunk.stored_payload);
  const std::optional<DecodedSource> decoded = payload ? decode_source(*payload) : std::nullopt;
  if (!decoded) {
    damage_log_.add({position, kChunkHeaderSize + chunk.header.stored_size, false});
    return Done{};
  }
  if (recording_id_path_.empty()) {
    recording_id_ = decoded->source.recording_id;
    recording_id_path_ = current_path_;
  } else if (decoded->source.recording_id != recording_id_) {
    return different_recordings_error(recording_id_path_, recording_id_, current_path_, decoded->source.recording_id);
  }
  const SourceIdentity identity = make_source_identity(decoded->source);
  if (sources_in_earlier_files_.contains(identity)) source_indexes_.try_emplace(chunk.header.source, std::nullopt);
  Result<std::optional<std::uint16_t>> source = find_source_index(chunk.header.source);
  if (!source) return std::move(source).error();
  if (!*source) return Done{};
  sources_in_file_.insert(identity);
  source_start_ns_[**source] = decoded->source.started_ns;
  return buffer_chunk(renumber_chunk_source(chunk.header, **source, chunk.stored_payload));
}

Result<std::optional<std::uint16_t>> RecordingJoiner::find_source_index(std::uint16_t number) {
  const auto source_index_entry = source_indexes_.find(number);
  if (source_index_entry != source_indexes_.end()) return source_index_entry->second;
  Result<std::uint16_t> assigned_number = assign_source_number();
  if (!assigned_number) return std::move(assigned_number).error();
  source_indexes_[number] = *assigned_number;
  return std::optional(*assigned_number);
}

Result<std::uint16_t> RecordingJoiner::assign_source_number() {
  if (assigned_number_count_ >= kMaxSources) {
    return Error{ErrorCode::unsupported, fmt::format("the recording has more than {} processes", kMaxSources),
                 "record fewer processes"};
  }
  return static_cast<std::uint16_t>(assigned_number_count_++);
}

Status RecordingJoiner::add_samples(std::uint16_t source, const SampleBatch& batch) {
  const auto first_ns = [](const SampleBatch& sample_batch) { return sample_batch.samples.front().reading.before_ns; };
  const bool fits = pending_samples_.samples.size() + batch.samples.size() <= kMaxSamplesPerChunk &&
                    pending_samples_.clock_pairs.size() + batch.clock_pairs.size() <= kMaxClockPairsPerChunk;
  const bool is_long =
      !pending_samples_.samples.empty() && !batch.samples.empty() &&
      static_cast<double>(first_ns(batch)) - static_cast<double>(first_ns(pending_samples_)) >= kJoinedSampleSpan_ns;
  if (source != pending_source_ || batch.time_unit_log2 != pending_samples_.time_unit_log2 || !fits || is_long) {
    const Status write_status = write_samples();
    if (!write_status) return write_status;
  }
  pending_source_ = source;
  pending_samples_.time_unit_log2 = batch.time_unit_log2;
  pending_samples_.samples.insert(pending_samples_.samples.end(), batch.samples.begin(), batch.samples.end());
  pending_samples_.clock_pairs.insert(pending_samples_.clock_pairs.end(), batch.clock_pairs.begin(),
                                      batch.clock_pairs.end());
  return Done{};
}

Status RecordingJoiner::write_samples() {
  if (pending_samples_.empty()) return Done{};
  const std::string payload = encode_samples(pending_samples_);
  pending_samples_.samples.clear();
  pending_samples_.clock_pairs.clear();
  return buffer_chunk(make_chunk(ChunkType::samples, pending_source_, payload));
}

Status RecordingJoiner::buffer_chunk(const std::string& chunk) {
  buffered_chunks_ += chunk;
  if (buffered_chunks_.size() < kWriteBufferBytes) return Done{};
  return joined_file_->append(std::exchange(buffered_chunks_, {}));
}

Status RecordingJoiner::finish(Diagnostics& diagnostics) {
  diagnostics.add_all(damage_log_.diagnostics());
  if (!diagnostics.empty()) {
    const Status buffer_status = buffer_chunk(make_chunk(ChunkType::diagnostics, 0, encode_diagnostics(diagnostics)));
    if (!buffer_status) return buffer_status;
  }
  const Status append_status = joined_file_->append(buffered_chunks_);
  return append_status ? joined_file_->sync() : append_status;
}

struct JoinInputs {
  std::vector<std::string> input_files;     // to copy, in order
  std::vector<std::string> finished_parts;  // parts that no process writes any more
};

Result<JoinInputs> find_join_inputs(const std::string& folder, const std::string& path, JoinSummary& summary) {
  Result<ListedParts> listed = list_parts(folder);
  if (!listed) return std::move(listed).error();
  for (const std::string& skipped_name : listed->skipped_names) {
    if (const std::optional<Error> fault = check_part_file(skipped_name))
      summary.diagnostics.add(skipped_part_diagnostic(*fault));
  }
  JoinInputs inputs;
  std::optional<std::string> id;
  for (const std::string& part : listed->parts) {
    if (is_being_written(part)) {
      ++summary.parts_left;
      summary.diagnostics.add(
          {"recording_part_open", 1,
           fmt::format("{} is still being written by its process; it stays next to the recording", part),
           "reports read both; join again after the process has ended"});
      continue;
    }
    if (const Result<FileSource> readable = FileSource::open(part); !readable) {
      summary.diagnostics.add({"recording_part_unreadable", 1,
                               fmt::format("{}; it stays in {}", readable.error().message, folder),
                               fmt::format("make it readable: chmod u+r {}", part)});
      ++summary.parts_left;
      continue;
    }
    inputs.finished_parts.push_back(part);
    const Result<std::string> part_id = recording_id_of_file(part);
    if (part_id && !id) id = *part_id;
  }
  const Result<std::string> old_id = recording_id_of_file(path);
  if (old_id && id && *old_id == *id) inputs.input_files.push_back(path);
  inputs.input_files.insert(inputs.input_files.end(), inputs.finished_parts.begin(), inputs.finished_parts.end());
  return inputs;
}

// A process that ended before it wrote anything leaves an empty part.
bool is_empty_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && status.st_size == 0;
}

// Removes rejected parts from `inputs.finished`, so that they are kept.
Result<std::uint64_t> write_joined_file(JoinInputs& inputs, const std::string& temporary, JoinSummary& summary) {
  Result<ChunkFile> out = ChunkFile::create(temporary);
  if (!out) return std::move(out).error();
  RecordingJoiner joiner(*out);
  std::optional<Error> first_part_error;
  std::size_t readable = 0;
  for (const std::string& file : inputs.input_files) {
    Status file_status = joiner.add_file(file);
    if (file_status) {
      ++readable;
    } else if (file_status.error().code == ErrorCode::malformed) {
      summary.diagnostics.add({"recording_part_unreadable", 1, file_status.error().message, {}});
      if (!first_part_error) first_part_error = file_status.error();
      if (!is_empty_file(file) && std::erase(inputs.finished_parts, file) > 0) ++summary.parts_left;
    } else {
      return std::move(file_status).error();
    }
  }
  if (readable == 0 && first_part_error) return *first_part_error;
  const Status finish_status = joiner.finish(summary.diagnostics);
  if (!finish_status) return finish_status.error();
  return out->size();
}

bool is_lock_file_name(const std::string& name) {
  return name.ends_with(kSamplerLockSuffix) || name.ends_with(kFolderLockName);
}

// Removes the folder, whose parts were copied and removed before. Fails if it still contains files other than locks.
// Renames the folder first: the next recorder must not see a half-removed folder.
Status remove_joined_folder(const std::string& folder) {
  const Result<std::vector<std::string>> names = list_directory(folder);
  if (!names) return names.error();
  if (!std::all_of(names->begin(), names->end(), is_lock_file_name)) return system_error("remove", folder, ENOTEMPTY);
  std::string renamed_folder = fmt::format("{}.done-{}", folder, ::getpid());
  if (::rename(folder.c_str(), renamed_folder.c_str()) != 0) renamed_folder = folder;
  for (const std::string& name : *names) ::unlink(fmt::format("{}/{}", renamed_folder, name).c_str());
  if (::rmdir(renamed_folder.c_str()) == 0) return Done{};
  return system_error("remove", renamed_folder, errno);
}

void remove_joined_parts(const std::string& folder, const JoinInputs& inputs, JoinSummary& summary) {
  for (const std::string& part : inputs.finished_parts) ::unlink(part.c_str());
  if (summary.parts_left > 0) return;
  const Status removal_status = remove_joined_folder(folder);
  if (removal_status) return;
  summary.diagnostics.add({"recording_folder_left", 1, removal_status.error().message,
                           fmt::format("check its content and remove it: rm -r {}", folder)});
}

}  // namespace

Result<JoinSummary> join_parts(const std::string& folder, const std::string& path,
                               const std::function<Status()>& before_rename) {
  JoinSummary summary;
  Result<JoinInputs> inputs = find_join_inputs(folder, path, summary);
  if (!inputs) return std::move(inputs).error();
  if (inputs->finished_parts.empty()) {
    return Error{ErrorCode::not_found, fmt::format("{} contains no part of a recording that can be joined", folder),
                 "wait until the recorded processes have ended"};
  }
  // The temporary file is in the recording's folder: a file of that name beside `path` could belong to the user.
  const std::string temporary = fmt::format("{}/{}", folder, kUnfinishedJoinFileName);
  if (is_being_written(temporary)) {
    return Error{ErrorCode::io, fmt::format("{} is being written by another process", temporary),
                 "wait until it has finished"};
  }
  ::unlink(temporary.c_str());
  Result<std::uint64_t> size = write_joined_file(*inputs, temporary, summary);
  if (Status before_rename_status = size && before_rename ? before_rename() : Status(Done{}); !before_rename_status)
    size = std::move(before_rename_status).error();
  if (size && ::rename(temporary.c_str(), path.c_str()) != 0) size = system_error("rename to", path, errno);
  if (!size) {
    ::unlink(temporary.c_str());
    return std::move(size).error().with_context("joining " + folder);
  }
  summary.bytes = *size;
  summary.parts = inputs->finished_parts.size();
  remove_joined_parts(folder, *inputs, summary);
  return summary;
}

}  // namespace joulemap::recording
