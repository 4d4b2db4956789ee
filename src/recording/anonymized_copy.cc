// SPDX-License-Identifier: Apache-2.0
#include "recording/anonymized_copy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "recording/activity_codec.h"
#include "recording/anonymizer.h"
#include "recording/byte_source.h"
#include "recording/chunk_file.h"
#include "recording/chunk_scanner.h"
#include "recording/engine_codec.h"
#include "recording/recording_decoder.h"

namespace joulemap::recording {
namespace {

using ChunkCallback = std::function<Status(const ScannedChunk&)>;

// Calls `on_chunk` for every whole chunk of the file, in order; counts the bytes between them.
Status for_each_chunk(const std::string& path, std::uint64_t& dropped_bytes, const ChunkCallback& on_chunk) {
  Result<FileSource> file = FileSource::open(path);
  if (!file) return std::move(file).error();
  ChunkScanner scanner(*file);
  bool has_chunk = false;
  while (true) {
    Result<std::optional<ScannedChunk>> chunk = scanner.next();
    if (!chunk) return std::move(chunk).error();
    if (scanner.damaged_range()) dropped_bytes += scanner.damaged_range()->bytes;
    if (!*chunk) break;
    has_chunk = true;
    if (Status readable = check_chunk_supported((*chunk)->header, path); !readable) return readable;
    if (Status callback_status = on_chunk(**chunk); !callback_status) return callback_status;
  }
  return has_chunk ? Status(Done{}) : Status(not_a_recording_error(path, file->size()));
}

std::optional<DecodedSource> decode_source_of_chunk(const ScannedChunk& chunk) {
  const std::optional<std::string> payload = decompress_payload(chunk.header, chunk.stored_payload);
  return payload ? decode_source(*payload) : std::nullopt;
}

class AnonymizedCopyWriter {
 public:
  AnonymizedCopyWriter(Anonymizer& names, ChunkFile& out) : anonymizer_(names), anonymized_file_(out) {}

  Status add_chunk(const ScannedChunk& chunk);
  const AnonymizedCopySummary& summary() const { return summary_; }

 private:
  // The payloads of the copy of a chunk; nullopt if the chunk cannot be decoded.
  std::optional<std::vector<std::string>> anonymize_payload(const ChunkHeader& header, const std::string& payload);
  std::optional<std::string> anonymize_source(const std::string& payload);
  std::optional<std::string> anonymize_events(const std::string& payload) const;
  std::optional<std::string> anonymize_facts(const std::string& payload) const;
  std::optional<std::string> anonymize_end(const std::string& payload) const;
  std::optional<std::string> anonymize_diagnostics(const std::string& payload) const;
  std::optional<std::vector<std::string>> anonymize_activity(const std::string& payload) const;
  std::optional<std::vector<std::string>> anonymize_engine_steps(const std::string& payload);
  Diagnostics anonymize_diagnostics(const Diagnostics& diagnostics) const;

  Anonymizer& anonymizer_;
  ChunkFile& anonymized_file_;
  AnonymizedCopySummary summary_;
  std::map<std::string, std::size_t> tenant_numbers_;  // their numbers
};

Status AnonymizedCopyWriter::add_chunk(const ScannedChunk& chunk) {
  const ChunkHeader& header = chunk.header;
  if (header.has_type(ChunkType::samples) ||
      header.has_type(ChunkType::kernel_powers)) {  // contain no names of machines or users
    ++summary_.chunks;
    return anonymized_file_.append(renumber_chunk_source(header, header.source, chunk.stored_payload));
  }
  const std::optional<std::string> payload = decompress_payload(header, chunk.stored_payload);
  const auto payloads = payload ? anonymize_payload(header, *payload) : std::nullopt;
  if (!payloads) {
    ++summary_.dropped_chunks;
    return Done{};
  }
  for (const std::string& anonymized_payload : *payloads) {
    ++summary_.chunks;
    const auto type = static_cast<ChunkType>(header.type);
    if (Status append_status = anonymized_file_.append(make_chunk(type, header.source, anonymized_payload));
        !append_status)
      return append_status;
  }
  return Done{};
}

std::optional<std::vector<std::string>> AnonymizedCopyWriter::anonymize_payload(const ChunkHeader& header,
                                                                                const std::string& payload) {
  if (header.has_type(ChunkType::activity)) return anonymize_activity(payload);
  if (header.has_type(ChunkType::engine_steps)) return anonymize_engine_steps(payload);
  std::optional<std::string> anonymized_payload;
  if (header.has_type(ChunkType::source)) anonymized_payload = anonymize_source(payload);
  if (header.has_type(ChunkType::events)) anonymized_payload = anonymize_events(payload);
  if (header.has_type(ChunkType::facts)) anonymized_payload = anonymize_facts(payload);
  if (header.has_type(ChunkType::end)) anonymized_payload = anonymize_end(payload);
  if (header.has_type(ChunkType::diagnostics)) anonymized_payload = anonymize_diagnostics(payload);
  if (!anonymized_payload) return std::nullopt;
  return std::vector<std::string>{std::move(*anonymized_payload)};
}

std::optional<std::string> AnonymizedCopyWriter::anonymize_source(const std::string& payload) {
  const std::optional<DecodedSource> decoded = decode_source(payload);
  if (!decoded) return std::nullopt;
  SourceDefinition definition{anonymizer_.anonymize_source(decoded->source), {}};
  for (const std::optional<Channel>& decoded_channel : decoded->channels) {
    if (!decoded_channel) return std::nullopt;  // a channel cannot be left out: samples refer to it by its index
    Channel channel = *decoded_channel;
    channel.source = anonymizer_.anonymize_text(channel.source);
    channel.device = anonymizer_.anonymize_name(channel.device);
    channel.model = anonymizer_.anonymize_text(channel.model);
    definition.channels.push_back(std::move(channel));
  }
  return encode_source(definition);
}

std::optional<std::string> AnonymizedCopyWriter::anonymize_events(const std::string& payload) const {
  std::optional<EventBatch> batch = decode_events(payload);
  if (!batch) return std::nullopt;
  for (Mark& mark : batch->marks) mark.name = anonymizer_.anonymize_text(mark.name);
  for (Metric& metric : batch->metrics) metric.name = anonymizer_.anonymize_name(metric.name);
  return encode_events(*batch);
}

// Version of the Linux kernel without its build: "6.1.0-18-cloud-amd64 #1 SMP ..." becomes "6.1.0".
std::string kernel_version_of_release(const std::string& release) {
  return release.substr(0, release.find_first_not_of("0123456789."));
}

std::optional<std::string> AnonymizedCopyWriter::anonymize_facts(const std::string& payload) const {
  std::optional<FactBatch> batch = decode_facts(payload);
  if (!batch) return std::nullopt;
  for (EnvironmentFact& fact : batch->environment_facts) {
    fact.value = fact.name == "kernel" ? kernel_version_of_release(fact.value) : anonymizer_.anonymize_text(fact.value);
  }
  for (ChannelCalibration& calibration : batch->calibrations)
    calibration.device = anonymizer_.anonymize_name(calibration.device);
  return encode_facts(*batch);
}

Diagnostics AnonymizedCopyWriter::anonymize_diagnostics(const Diagnostics& diagnostics) const {
  Diagnostics anonymized_diagnostics;
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    anonymized_diagnostics.add({diagnostic.code, diagnostic.count, anonymizer_.anonymize_text(diagnostic.message),
                                anonymizer_.anonymize_text(diagnostic.remedy)});
  }
  return anonymized_diagnostics;
}

std::optional<std::string> AnonymizedCopyWriter::anonymize_end(const std::string& payload) const {
  std::optional<RecordingEnd> decoded = decode_end(payload);
  if (!decoded) return std::nullopt;
  decoded->diagnostics = anonymize_diagnostics(decoded->diagnostics);
  return encode_end(*decoded);
}

std::optional<std::string> AnonymizedCopyWriter::anonymize_diagnostics(const std::string& payload) const {
  const std::optional<Diagnostics> decoded = decode_diagnostics(payload);
  if (!decoded) return std::nullopt;
  return encode_diagnostics(anonymize_diagnostics(*decoded));
}

std::optional<std::vector<std::string>> AnonymizedCopyWriter::anonymize_activity(const std::string& payload) const {
  std::optional<DecodedActivity> decoded = decode_activity(payload);
  if (!decoded || payload.empty()) return std::nullopt;
  for (Scope& scope : decoded->activity.scopes) {
    const bool may_contain_path = scope.kind == ScopeKind::function || scope.kind == ScopeKind::region;
    scope.name = may_contain_path ? anonymizer_.anonymize_text(scope.name) : anonymizer_.anonymize_name(scope.name);
  }
  for (KernelQueue& queue : decoded->activity.queues) queue.device = anonymizer_.anonymize_name(queue.device);
  const auto time_unit_log2 = static_cast<unsigned char>(payload.front());
  std::vector<std::string> payloads;
  for (const Activity& part : split_activity(std::move(decoded->activity))) {
    payloads.push_back(encode_activity(part, time_unit_log2));
  }
  return payloads;
}

// Ids of requests and names of tenants may identify users: numbers replace them. The same tenant keeps its number.
std::optional<std::vector<std::string>> AnonymizedCopyWriter::anonymize_engine_steps(const std::string& payload) {
  std::optional<EngineSteps> steps = decode_engine_steps(payload);
  if (!steps) return std::nullopt;
  for (EngineRequest& request : steps->requests) {
    request.id = fmt::format("request-{}", request.number);
    if (!request.tenant.empty()) {
      const std::size_t number = tenant_numbers_.try_emplace(request.tenant, tenant_numbers_.size() + 1).first->second;
      request.tenant = fmt::format("tenant-{}", number);
    }
    request.model = anonymizer_.anonymize_text(request.model);
  }
  return encode_engine_steps(*steps);
}

}  // namespace

Result<AnonymizedCopySummary> write_anonymized_copy(const std::string& source_path, const std::string& copy_path,
                                                    const std::string& user) {
  Anonymizer names;
  names.add_user_name(user);
  std::uint64_t dropped_bytes = 0;
  const Status collect_status = for_each_chunk(source_path, dropped_bytes, [&](const ScannedChunk& chunk) -> Status {
    if (!chunk.header.has_type(ChunkType::source)) return Done{};
    if (const std::optional<DecodedSource> decoded = decode_source_of_chunk(chunk))
      names.collect_names(decoded->source);
    return Done{};
  });
  if (!collect_status) return collect_status.error();
  Result<ChunkFile> out = ChunkFile::create(copy_path);
  if (!out) return std::move(out).error();
  AnonymizedCopyWriter copy_writer(names, *out);
  dropped_bytes = 0;
  Status copy_status = for_each_chunk(source_path, dropped_bytes,
                                      [&](const ScannedChunk& chunk) { return copy_writer.add_chunk(chunk); });
  if (copy_status) copy_status = out->sync();
  if (!copy_status) {
    ::unlink(copy_path.c_str());
    return std::move(copy_status).error();
  }
  AnonymizedCopySummary summary = copy_writer.summary();
  summary.bytes = out->size();
  summary.dropped_bytes = dropped_bytes;
  return summary;
}

}  // namespace joulemap::recording
