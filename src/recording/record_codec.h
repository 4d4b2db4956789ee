// SPDX-License-Identifier: Apache-2.0
//
// The payloads of all chunks but samples: who wrote a recording and what it measured, marks and metrics, facts, how it
// ended. Lists of records with their length in front, so that a newer minor version can add fields. Pure; any thread.
//
// A decoder gives nothing when the payload makes no sense. What only a newer version knows (a kind of mark, a quantity)
// is left out and counted: dropping it is better than calling it something else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/recorded.h"

namespace joulemap::recording {

// Longer names and values are cut when they are written: 128 KiB, the longest argument Linux gives a program.
inline constexpr std::size_t kLongestText = std::size_t{128} << 10;

struct SourceDefinition {
  RecordingSource source;
  std::vector<Channel> channels;
};
std::string encode_source(const SourceDefinition& definition);

struct DecodedSource {
  RecordingSource source;
  // One for each channel number; nothing for those that a newer version describes in a way we do not understand.
  std::vector<std::optional<Channel>> channels;
};
std::optional<DecodedSource> decode_source(std::string_view payload);

struct EventBatch {
  std::vector<Mark> marks;
  std::vector<Metric> metrics;
  std::uint64_t unknown_marks = 0;  // of a kind that we do not know; when decoded only

  bool empty() const { return marks.empty() && metrics.empty(); }
};
std::string encode_events(const EventBatch& batch);
std::optional<EventBatch> decode_events(std::string_view payload);

struct FactBatch {
  std::vector<EnvironmentFact> environment;
  std::vector<ChannelCalibration> calibrations;

  bool empty() const { return environment.empty() && calibrations.empty(); }
};
std::string encode_facts(const FactBatch& batch);
std::optional<FactBatch> decode_facts(std::string_view payload);

std::string encode_end(const RecordingEnd& end);
std::optional<RecordingEnd> decode_end(std::string_view payload);

std::string encode_notes(const Diagnostics& diagnostics);
std::optional<Diagnostics> decode_notes(std::string_view payload);

}  // namespace joulemap::recording
