// SPDX-License-Identifier: Apache-2.0
//
// Payloads of all chunks except samples, activity and powers: source and channels of a recording, marks and metrics,
// facts, how it ended, diagnostics. They are lists of length-prefixed records, so that a newer minor version can append
// fields. Pure; any thread.
//
// A decoder returns nullopt if the payload is invalid. Items that only a newer version defines (a kind of mark, a
// quantity) are skipped, because a wrong label would be worse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/recorded.h"

namespace joulemap::recording {

// Longer names and values are truncated on writing: 128 KiB, the longest program argument on Linux.
inline constexpr std::size_t kMaxTextBytes = std::size_t{128} << 10;

struct SourceDefinition {
  RecordingSource source;
  std::vector<Channel> channels;
};
std::string encode_source(const SourceDefinition& definition);

struct DecodedSource {
  RecordingSource source;
  // One per channel number; nullopt for channels whose description needs a newer version.
  std::vector<std::optional<Channel>> channels;
};
std::optional<DecodedSource> decode_source(std::string_view payload);

struct EventBatch {
  std::vector<Mark> marks;
  std::vector<Metric> metrics;
  std::uint64_t unknown_mark_count = 0;  // marks of unknown kinds; set by decoding only

  bool empty() const { return marks.empty() && metrics.empty(); }
};
std::string encode_events(const EventBatch& batch);
std::optional<EventBatch> decode_events(std::string_view payload);

struct FactBatch {
  std::vector<EnvironmentFact> environment_facts;
  std::vector<ChannelCalibration> calibrations;

  bool empty() const { return environment_facts.empty() && calibrations.empty(); }
};
std::string encode_facts(const FactBatch& batch);
std::optional<FactBatch> decode_facts(std::string_view payload);

std::string encode_end(const RecordingEnd& end);
std::optional<RecordingEnd> decode_end(std::string_view payload);

std::string encode_diagnostics(const Diagnostics& diagnostics);
std::optional<Diagnostics> decode_diagnostics(std::string_view payload);

}  // namespace joulemap::recording
