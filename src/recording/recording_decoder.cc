// SPDX-License-Identifier: Apache-2.0
#include "recording/recording_decoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "recording/activity_codec.h"
#include "recording/engine_codec.h"
#include "recording/power_codec.h"
#include "recording/sample_codec.h"

namespace joulemap::recording {
namespace {

// Limit of all source definitions together, decompressed: only they stay in memory.
constexpr std::uint64_t kMaxDefinitionBytes = std::uint64_t{32} << 20;
constexpr std::size_t kMaxListedUnendedSources = 8;

}  // namespace

Status check_chunk_supported(const ChunkHeader& header, std::string_view name) {
  if (header.major != kFormatMajor) {
    return Error{ErrorCode::unsupported,
                 fmt::format("{} has version {}.{} of the recording format; this joulemap ({}) reads {}.x", name,
                             header.major, header.minor, JOULEMAP_VERSION, kFormatMajor),
                 "update joulemap to the version that wrote it, or later"};
  }
  if (header.is_required && !is_known_chunk_type(header.type)) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("{} has version {}.{} of the recording format and contains a required chunk (type {}) that is "
                    "unknown; this joulemap ({}) supports {}.{}",
                    name, header.major, header.minor, header.type, JOULEMAP_VERSION, kFormatMajor, kFormatMinor),
        "update joulemap to the version that wrote it, or later"};
  }
  return Done{};
}

SourceIdentity make_source_identity(const RecordingSource& source) {
  return {source.recording_id, source.boot_id, source.pid, source.started_ns};
}

Error not_a_recording_error(std::string_view name, std::uint64_t size) {
  if (size == 0) {
    return {ErrorCode::malformed, fmt::format("{} is empty: its process ended before it wrote data", name),
            "record again"};
  }
  if (name.ends_with(".py")) {
    return {ErrorCode::malformed, fmt::format("{} is a program, not a recording", name),
            fmt::format("joulemap record -- python {}", name)};
  }
  return {ErrorCode::malformed, fmt::format("{} is not a joulemap recording, or it is completely damaged", name),
          "pass a .joule file that joulemap record wrote"};
}

Error source_definition_lost_error(std::string_view name) {
  return {ErrorCode::malformed, fmt::format("{}: the description of the measurement is lost", name), "record again"};
}

Error different_recordings_error(std::string_view first_file, std::string_view first_id, std::string_view second_file,
                                 std::string_view second_id) {
  return {ErrorCode::usage,
          fmt::format("{} and {} are different recordings (ids {} and {})", first_file, second_file,
                      joulemap::quoted(first_id), joulemap::quoted(second_id)),
          "pass files of one recording only; to compare recordings, pass them one at a time; to record one run on "
          "several machines, name it: record --run NAME"};
}

Status RecordingDecoder::read(ByteSource& bytes, std::string_view name) {
  current_file_ = &bytes;
  current_file_name_ = name;
  source_indexes_.clear();
  sources_in_file_.clear();
  has_read_definitions_ahead_ = false;
  const std::uint64_t chunks_before = summary_.chunks_read + summary_.chunks_skipped + summary_.chunks_repeated;
  damage_log_.begin_file(name);
  ChunkScanner scanner(bytes);
  while (true) {
    Result<std::optional<ScannedChunk>> chunk = scanner.next();
    if (!chunk) return std::move(chunk).error();
    if (!*chunk) break;
    if (scanner.damaged_range()) damage_log_.add(*scanner.damaged_range());
    chunk_offset_ = scanner.chunk_offset();
    const Status chunk_status = read_chunk(**chunk);
    if (!chunk_status) return chunk_status;
  }
  if (summary_.chunks_read + summary_.chunks_skipped + summary_.chunks_repeated == chunks_before) {
    return not_a_recording_error(name, bytes.size());
  }
  if (scanner.damaged_range()) damage_log_.add(*scanner.damaged_range());
  damage_log_.end_file();
  summary_.bytes += bytes.size();
  sources_in_earlier_files_.merge(sources_in_file_);
  if (!source_indexes_.empty()) return Done{};
  return source_definition_lost_error(name);
}

Status RecordingDecoder::read_chunk(const ScannedChunk& chunk) {
  const ChunkHeader header = chunk.header;
  const Status readable = check_chunk_supported(header, current_file_name_);
  if (!readable) return readable;
  summary_.major = std::max<int>(summary_.major, header.major);
  summary_.minor = std::max<int>(summary_.minor, header.minor);
  if (!is_known_chunk_type(header.type)) {
    ++summary_.chunks_skipped;
    return Done{};
  }
  if (header.has_type(ChunkType::source)) return read_source_definition(chunk);
  // Decompressed first: read_definitions_ahead() invalidates the chunk's bytes.
  const std::optional<std::string> payload = decompress_payload(header, chunk.stored_payload);
  if (!header.has_type(ChunkType::diagnostics) && !source_indexes_.contains(header.source) &&
      !has_read_definitions_ahead_) {
    const Status read_ahead_status = read_definitions_ahead();
    if (!read_ahead_status) return read_ahead_status;
  }
  const auto source_index_entry = source_indexes_.find(header.source);
  const bool is_repeated = source_index_entry != source_indexes_.end() && !source_index_entry->second;
  if (is_repeated) {
    ++summary_.chunks_repeated;
    return Done{};
  }
  ++summary_.chunks_read;
  bool is_payload_decoded = payload.has_value();
  if (is_payload_decoded && header.has_type(ChunkType::diagnostics)) {
    is_payload_decoded = read_diagnostics(*payload);
  } else if (is_payload_decoded && source_index_entry == source_indexes_.end()) {
    ++chunks_without_source_;
  } else if (is_payload_decoded) {
    is_payload_decoded = read_payload(header, *payload, *source_index_entry->second);
  }
  if (!is_payload_decoded) damage_log_.add({chunk_offset_, kChunkHeaderSize + header.stored_size, false});
  return Done{};
}

Status RecordingDecoder::read_source_definition(const ScannedChunk& chunk) {
  if (source_indexes_.contains(chunk.header.source)) {
    ++summary_.chunks_repeated;
    return Done{};
  }
  ++summary_.chunks_read;
  const std::optional<std::string> payload = decompress_payload(chunk.header, chunk.stored_payload);
  std::optional<DecodedSource> decoded = payload ? decode_source(*payload) : std::nullopt;
  if (!decoded) {
    damage_log_.add({chunk_offset_, kChunkHeaderSize + chunk.header.stored_size, false});
    return Done{};
  }
  definition_bytes_ += payload->size();
  return define_source(chunk.header.source, std::move(*decoded));
}

Status RecordingDecoder::define_source(std::uint16_t number, DecodedSource decoded) {
  const SourceIdentity identity = make_source_identity(decoded.source);
  if (sources_in_earlier_files_.contains(identity)) {
    source_indexes_[number] = std::nullopt;
    return Done{};
  }
  if (sources_.empty()) {
    summary_.recording_id = decoded.source.recording_id;
    first_file_name_ = current_file_name_;
  } else if (decoded.source.recording_id != summary_.recording_id) {
    return different_recordings_error(first_file_name_, summary_.recording_id, current_file_name_,
                                      decoded.source.recording_id);
  }
  if (definition_bytes_ > kMaxDefinitionBytes || sources_.size() >= kMaxSources) {
    return Error{ErrorCode::malformed,
                 fmt::format("{} describes more processes and channels than joulemap supports", current_file_name_),
                 {}};
  }
  sources_in_file_.insert(identity);
  const auto source = static_cast<std::uint32_t>(sources_.size());
  source_indexes_[number] = source;
  const std::uint32_t first_channel = sample_filter_.add_source(decoded.source, decoded.channels);
  std::vector<Channel> known_channels;
  for (std::optional<Channel>& channel : decoded.channels) {
    if (channel) known_channels.push_back(std::move(*channel));
  }
  visitor_->on_source(source, decoded.source);
  visitor_->on_channels(source, first_channel, known_channels);
  sources_.push_back({std::move(decoded.source), false});
  return Done{};
}

// Searches for a later copy of a damaged source definition. Runs at most once per file and takes all definitions that
// it finds, so that a hostile file cannot cause repeated passes.
Status RecordingDecoder::read_definitions_ahead() {
  has_read_definitions_ahead_ = true;
  ChunkScanner scanner(*current_file_);
  while (true) {
    Result<std::optional<ScannedChunk>> chunk = scanner.next();
    if (!chunk) return std::move(chunk).error();
    if (!*chunk) return Done{};
    const ChunkHeader& header = (*chunk)->header;
    const Status readable = check_chunk_supported(header, current_file_name_);
    if (!readable) return readable;
    if (!header.has_type(ChunkType::source) || source_indexes_.contains(header.source)) continue;
    const std::optional<std::string> payload = decompress_payload(header, (*chunk)->stored_payload);
    std::optional<DecodedSource> decoded = payload ? decode_source(*payload) : std::nullopt;
    if (!decoded) continue;  // counted as damage when read() reaches it
    definition_bytes_ += payload->size();
    const Status defined = define_source(header.source, std::move(*decoded));
    if (!defined) return defined;
  }
}

bool RecordingDecoder::read_payload(const ChunkHeader& header, std::string_view payload, std::uint32_t source) {
  if (header.has_type(ChunkType::samples)) return read_samples(payload, source);
  if (header.has_type(ChunkType::events)) return read_events(payload, source);
  if (header.has_type(ChunkType::facts)) return read_facts(payload, source);
  if (header.has_type(ChunkType::kernel_powers)) return read_powers(payload, source);
  if (header.has_type(ChunkType::engine_steps)) return read_engine_steps(payload, source);
  if (header.has_type(ChunkType::activity)) return read_activity(payload, source);
  return read_end(payload, source);
}

bool RecordingDecoder::read_samples(std::string_view payload, std::uint32_t source) {
  std::optional<SampleBatch> batch = decode_samples(payload);
  if (!batch) return false;
  for (const ClockPair& pair : batch->clock_pairs) visitor_->on_clock(source, pair);
  damage_log_.add_samples(source, sources_[source].source.started_ns, batch->samples);
  sample_filter_.filter(source, batch->samples);
  summary_.samples += batch->samples.size();
  if (!batch->samples.empty()) visitor_->on_samples(source, batch->samples);
  return true;
}

bool RecordingDecoder::read_events(std::string_view payload, std::uint32_t source) {
  const std::optional<EventBatch> batch = decode_events(payload);
  if (!batch) return false;
  for (const Mark& mark : batch->marks) visitor_->on_mark(source, mark);
  for (const Metric& metric : batch->metrics) visitor_->on_metric(source, metric);
  unknown_mark_count_ += batch->unknown_mark_count;
  return true;
}

bool RecordingDecoder::read_facts(std::string_view payload, std::uint32_t source) {
  const std::optional<FactBatch> batch = decode_facts(payload);
  if (!batch) return false;
  for (const EnvironmentFact& fact : batch->environment_facts) visitor_->on_fact(source, fact);
  for (const ChannelCalibration& calibration : batch->calibrations) visitor_->on_calibration(source, calibration);
  return true;
}

bool RecordingDecoder::read_powers(std::string_view payload, std::uint32_t source) {
  const std::optional<std::vector<KernelPower>> powers = decode_power_payload(payload);
  if (!powers) return false;
  for (const KernelPower& kernel_power : *powers) visitor_->on_power(source, kernel_power);
  return true;
}

bool RecordingDecoder::read_engine_steps(std::string_view payload, std::uint32_t source) {
  const std::optional<EngineSteps> steps = decode_engine_steps(payload);
  if (!steps) return false;
  visitor_->on_engine_steps(source, *steps);
  return true;
}

bool RecordingDecoder::read_activity(std::string_view payload, std::uint32_t source) {
  const std::optional<DecodedActivity> decoded = decode_activity(payload);
  if (!decoded) return false;
  visitor_->on_activity(source, decoded->activity);
  unknown_scope_count_ += decoded->unknown_scope_count;
  return true;
}

bool RecordingDecoder::read_end(std::string_view payload, std::uint32_t source) {
  const std::optional<RecordingEnd> end = decode_end(payload);
  if (!end) return false;
  sources_[source].has_end_chunk = true;
  visitor_->on_end(source, *end);
  return true;
}

bool RecordingDecoder::read_diagnostics(std::string_view payload) {
  const std::optional<Diagnostics> notes = decode_diagnostics(payload);
  if (!notes) return false;
  constexpr std::size_t kMaxCollectedDiagnostics = 1000;
  if (summary_.diagnostics.list().size() < kMaxCollectedDiagnostics) summary_.diagnostics.add_all(*notes);
  return true;
}

void RecordingDecoder::report_unended_sources() {
  std::uint64_t unended_source_count = 0;
  for (const SourceState& state : sources_) {
    if (state.has_end_chunk || ++unended_source_count > kMaxListedUnendedSources) continue;
    add_diagnostic({"recording_not_ended",
                    1,
                    fmt::format("process {} on {} stopped writing before it ended", state.source.pid,
                                joulemap::quoted(state.source.host)),
                    {}});
  }
  if (unended_source_count > kMaxListedUnendedSources) {
    const std::uint64_t unlisted_source_count = unended_source_count - kMaxListedUnendedSources;
    add_diagnostic({"recording_not_ended",
                    unlisted_source_count,
                    fmt::format("{} more processes stopped writing before they ended", unlisted_source_count),
                    {}});
  }
  summary_.all_sources_ended = unended_source_count == 0 && !sources_.empty();
}

RecordingSummary RecordingDecoder::finish() {
  summary_.sources = sources_.size();
  summary_.damaged_ranges = damage_log_.damaged_range_count();
  summary_.damaged_bytes = damage_log_.damaged_bytes();
  summary_.diagnostics.add_all(damage_log_.diagnostics());
  summary_.diagnostics.add_all(sample_filter_.diagnostics());
  if (summary_.chunks_skipped > 0) {
    add_diagnostic({"chunks_skipped", summary_.chunks_skipped,
                    "chunks that only a newer joulemap supports were skipped", "update joulemap to read them"});
  }
  if (unknown_mark_count_ > 0) {
    add_diagnostic({"unknown_marks", unknown_mark_count_, "marks that only a newer joulemap supports were skipped",
                    "update joulemap"});
  }
  if (unknown_scope_count_ > 0) {
    add_diagnostic({"unknown_places", unknown_scope_count_,
                    "scopes and kernels that only a newer joulemap supports have no name", "update joulemap"});
  }
  if (chunks_without_source_ > 0) {
    add_diagnostic({"recording_source_lost",
                    chunks_without_source_,
                    "chunks of a process whose description is lost were skipped",
                    {}});
  }
  report_unended_sources();
  return std::move(summary_);
}

}  // namespace joulemap::recording
