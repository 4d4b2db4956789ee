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

using OnChunk = std::function<Status(const ScannedChunk&)>;

// Calls `on_chunk` for every whole chunk of the file, in order; counts the bytes between them.
Status for_each_chunk(const std::string& path, std::uint64_t& dropped_bytes, const OnChunk& on_chunk) {
  Result<FileSource> file = FileSource::open(path);
  if (!file) return std::move(file).error();
  ChunkScanner scanner(*file);
  bool any = false;
  while (true) {
    Result<std::optional<ScannedChunk>> chunk = scanner.next();
    if (!chunk) return std::move(chunk).error();
    if (scanner.damaged_range()) dropped_bytes += scanner.damaged_range()->bytes;
    if (!*chunk) break;
    any = true;
    if (Status readable = check_readable((*chunk)->header, path); !readable) return readable;
    if (Status done = on_chunk(**chunk); !done) return done;
  }
  return any ? Status(Done{}) : Status(not_a_recording_error(path, file->size()));
}

std::optional<DecodedSource> source_in(const ScannedChunk& chunk) {
  const std::optional<std::string> payload = decompress_payload(chunk.header, chunk.stored);
  return payload ? decode_source(*payload) : std::nullopt;
}

class AnonymizedCopyWriter {
 public:
  AnonymizedCopyWriter(Anonymizer& names, ChunkFile& out) : names_(names), out_(out) {}

  Status add(const ScannedChunk& chunk);
  const AnonymizedCopySummary& summary() const { return summary_; }

 private:
  // The payloads of the copy of a chunk; nullopt if the chunk cannot be decoded.
  std::optional<std::vector<std::string>> shared(const ChunkHeader& header, const std::string& payload);
  std::optional<std::string> source(const std::string& payload);
  std::optional<std::string> events(const std::string& payload) const;
  std::optional<std::string> facts(const std::string& payload) const;
  std::optional<std::string> end(const std::string& payload) const;
  std::optional<std::string> diagnostics(const std::string& payload) const;
  std::optional<std::vector<std::string>> activity(const std::string& payload) const;
  std::optional<std::vector<std::string>> engine_steps(const std::string& payload);
  Diagnostics diagnostics(const Diagnostics& given) const;

  Anonymizer& names_;
  ChunkFile& out_;
  AnonymizedCopySummary summary_;
  std::map<std::string, std::size_t> tenants_;  // their numbers
};

Status AnonymizedCopyWriter::add(const ScannedChunk& chunk) {
  const ChunkHeader& header = chunk.header;
  if (header.is(ChunkType::samples) || header.is(ChunkType::kernel_powers)) {  // contain no names of machines or users
    ++summary_.chunks;
    return out_.append(with_source_number(header, header.source, chunk.stored));
  }
  const std::optional<std::string> payload = decompress_payload(header, chunk.stored);
  const auto payloads = payload ? shared(header, *payload) : std::nullopt;
  if (!payloads) {
    ++summary_.dropped_chunks;
    return Done{};
  }
  for (const std::string& each : *payloads) {
    ++summary_.chunks;
    const auto type = static_cast<ChunkType>(header.type);
    if (Status written = out_.append(make_chunk(type, header.source, each)); !written) return written;
  }
  return Done{};
}

std::optional<std::vector<std::string>> AnonymizedCopyWriter::shared(const ChunkHeader& header,
                                                                     const std::string& payload) {
  if (header.is(ChunkType::activity)) return activity(payload);
  if (header.is(ChunkType::engine_steps)) return engine_steps(payload);
  std::optional<std::string> one;
  if (header.is(ChunkType::source)) one = source(payload);
  if (header.is(ChunkType::events)) one = events(payload);
  if (header.is(ChunkType::facts)) one = facts(payload);
  if (header.is(ChunkType::end)) one = end(payload);
  if (header.is(ChunkType::diagnostics)) one = diagnostics(payload);
  if (!one) return std::nullopt;
  return std::vector<std::string>{std::move(*one)};
}

std::optional<std::string> AnonymizedCopyWriter::source(const std::string& payload) {
  const std::optional<DecodedSource> decoded = decode_source(payload);
  if (!decoded) return std::nullopt;
  SourceDefinition definition{names_.source(decoded->source), {}};
  for (const std::optional<Channel>& known : decoded->channels) {
    if (!known) return std::nullopt;  // a channel cannot be left out: samples refer to it by its index
    Channel channel = *known;
    channel.source = names_.text(channel.source);
    channel.device = names_.name(channel.device);
    channel.model = names_.text(channel.model);
    definition.channels.push_back(std::move(channel));
  }
  return encode_source(definition);
}

std::optional<std::string> AnonymizedCopyWriter::events(const std::string& payload) const {
  std::optional<EventBatch> batch = decode_events(payload);
  if (!batch) return std::nullopt;
  for (Mark& mark : batch->marks) mark.name = names_.text(mark.name);
  for (Metric& metric : batch->metrics) metric.name = names_.name(metric.name);
  return encode_events(*batch);
}

// Version of the Linux kernel without its build: "6.1.0-18-cloud-amd64 #1 SMP ..." becomes "6.1.0".
std::string kernel_version(const std::string& release) {
  return release.substr(0, release.find_first_not_of("0123456789."));
}

std::optional<std::string> AnonymizedCopyWriter::facts(const std::string& payload) const {
  std::optional<FactBatch> batch = decode_facts(payload);
  if (!batch) return std::nullopt;
  for (EnvironmentFact& fact : batch->environment) {
    fact.value = fact.name == "kernel" ? kernel_version(fact.value) : names_.text(fact.value);
  }
  for (ChannelCalibration& known : batch->calibrations) known.device = names_.name(known.device);
  return encode_facts(*batch);
}

Diagnostics AnonymizedCopyWriter::diagnostics(const Diagnostics& given) const {
  Diagnostics shared;
  for (const Diagnostic& each : given.list()) {
    shared.add({each.code, each.count, names_.text(each.message), names_.text(each.remedy)});
  }
  return shared;
}

std::optional<std::string> AnonymizedCopyWriter::end(const std::string& payload) const {
  std::optional<RecordingEnd> decoded = decode_end(payload);
  if (!decoded) return std::nullopt;
  decoded->diagnostics = diagnostics(decoded->diagnostics);
  return encode_end(*decoded);
}

std::optional<std::string> AnonymizedCopyWriter::diagnostics(const std::string& payload) const {
  const std::optional<Diagnostics> decoded = decode_diagnostics(payload);
  if (!decoded) return std::nullopt;
  return encode_diagnostics(diagnostics(*decoded));
}

std::optional<std::vector<std::string>> AnonymizedCopyWriter::activity(const std::string& payload) const {
  std::optional<DecodedActivity> decoded = decode_activity(payload);
  if (!decoded || payload.empty()) return std::nullopt;
  for (Scope& scope : decoded->activity.scopes) {
    const bool names_file = scope.kind == ScopeKind::function || scope.kind == ScopeKind::region;
    scope.name = names_file ? names_.text(scope.name) : names_.name(scope.name);
  }
  for (KernelQueue& queue : decoded->activity.queues) queue.device = names_.name(queue.device);
  const auto time_unit_log2 = static_cast<unsigned char>(payload.front());
  std::vector<std::string> payloads;
  for (const Activity& part : split_activity(std::move(decoded->activity))) {
    payloads.push_back(encode_activity(part, time_unit_log2));
  }
  return payloads;
}

// Ids of requests and names of tenants may identify users: numbers replace them. The same tenant keeps its number.
std::optional<std::vector<std::string>> AnonymizedCopyWriter::engine_steps(const std::string& payload) {
  std::optional<EngineSteps> steps = decode_engine_steps(payload);
  if (!steps) return std::nullopt;
  for (EngineRequest& request : steps->requests) {
    request.id = fmt::format("request-{}", request.number);
    if (!request.tenant.empty()) {
      const std::size_t number = tenants_.try_emplace(request.tenant, tenants_.size() + 1).first->second;
      request.tenant = fmt::format("tenant-{}", number);
    }
    request.model = names_.text(request.model);
  }
  return encode_engine_steps(*steps);
}

}  // namespace

Result<AnonymizedCopySummary> write_anonymized_copy(const std::string& from, const std::string& to,
                                                    const std::string& user) {
  Anonymizer names;
  names.add_user_name(user);
  std::uint64_t dropped_bytes = 0;
  const Status names_collected = for_each_chunk(from, dropped_bytes, [&](const ScannedChunk& chunk) -> Status {
    if (!chunk.header.is(ChunkType::source)) return Done{};
    if (const std::optional<DecodedSource> decoded = source_in(chunk)) names.collect_names(decoded->source);
    return Done{};
  });
  if (!names_collected) return names_collected.error();
  Result<ChunkFile> out = ChunkFile::create(to);
  if (!out) return std::move(out).error();
  AnonymizedCopyWriter copy_writer(names, *out);
  dropped_bytes = 0;
  Status shared =
      for_each_chunk(from, dropped_bytes, [&](const ScannedChunk& chunk) { return copy_writer.add(chunk); });
  if (shared) shared = out->sync();
  if (!shared) {
    ::unlink(to.c_str());
    return std::move(shared).error();
  }
  AnonymizedCopySummary summary = copy_writer.summary();
  summary.bytes = out->size();
  summary.dropped_bytes = dropped_bytes;
  return summary;
}

}  // namespace joulemap::recording
