// SPDX-License-Identifier: Apache-2.0
//
// RecordingDecoder: the implementation of read_recording(): passes the content of several files to the visitor, chunk
// by chunk. recording_reader.h lists the rules. The join (recording_join.cc) uses the functions below, too, so that
// both interpret chunks in the same way. Owned by one call of read_recording(); one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "recording/chunk_scanner.h"
#include "recording/damage_log.h"
#include "recording/record_codec.h"
#include "recording/recording_reader.h"
#include "recording/sample_filter.h"

namespace joulemap::recording {

// Fails if this version must stop: a newer major version, or an unknown type that is marked as required.
Status check_chunk_supported(const ChunkHeader& header, std::string_view name);

// Identifies the same source in two files: recording ID, boot ID, PID, start time.
using SourceIdentity = std::tuple<std::string, std::string, std::int64_t, std::int64_t>;
SourceIdentity make_source_identity(const RecordingSource& source);

// The error for a file without any whole chunk.
Error not_a_recording_error(std::string_view name, std::uint64_t size);
// The error for a file in which no source definition is readable.
Error source_definition_lost_error(std::string_view name);

// The error for two files of different recordings.
Error different_recordings_error(std::string_view first_file, std::string_view first_id, std::string_view second_file,
                                 std::string_view second_id);

class RecordingDecoder {
 public:
  explicit RecordingDecoder(RecordingVisitor& visitor) : visitor_(&visitor) {}

  Status read(ByteSource& bytes, std::string_view name);
  void add_diagnostic(Diagnostic diagnostic) { summary_.diagnostics.add(std::move(diagnostic)); }
  RecordingSummary finish();

 private:
  // Index of a source of the current file among all sources; nullopt if an earlier file contained it.
  using SourceIndex = std::optional<std::uint32_t>;
  struct SourceState {
    RecordingSource source;
    bool has_end_chunk = false;
  };

  Status read_chunk(const ScannedChunk& chunk);
  Status read_source_definition(const ScannedChunk& chunk);
  Status define_source(std::uint16_t number, DecodedSource decoded);
  Status read_definitions_ahead();
  bool read_payload(const ChunkHeader& header, std::string_view payload, std::uint32_t source);
  bool read_samples(std::string_view payload, std::uint32_t source);
  bool read_events(std::string_view payload, std::uint32_t source);
  bool read_facts(std::string_view payload, std::uint32_t source);
  bool read_powers(std::string_view payload, std::uint32_t source);
  bool read_engine_steps(std::string_view payload, std::uint32_t source);
  bool read_activity(std::string_view payload, std::uint32_t source);
  bool read_end(std::string_view payload, std::uint32_t source);
  bool read_diagnostics(std::string_view payload);
  void report_unended_sources();

  RecordingVisitor* visitor_;
  RecordingSummary summary_;
  DamageLog damage_log_;
  SampleFilter sample_filter_;
  std::vector<SourceState> sources_;
  std::set<SourceIdentity> sources_in_earlier_files_;  // sources of the files read before
  std::uint64_t definition_bytes_ = 0;
  std::uint64_t unknown_mark_count_ = 0;
  std::uint64_t unknown_scope_count_ = 0;
  std::uint64_t chunks_without_source_ = 0;

  // State of the current file.
  ByteSource* current_file_ = nullptr;
  std::string current_file_name_;
  std::string first_file_name_;  // of the first file with a source definition
  std::map<std::uint16_t, SourceIndex> source_indexes_;
  std::set<SourceIdentity> sources_in_file_;
  bool has_read_definitions_ahead_ = false;
  std::uint64_t chunk_offset_ = 0;  // offset of the current chunk
};

}  // namespace joulemap::recording
