// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/kineto_reader.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/scoped_signal_block.h"
#include "base/text.h"
#include "formats/gzip.h"
#include "ingest/kineto/block_reader.h"
#include "ingest/kineto/block_source.h"
#include "ingest/kineto/trace_assembly.h"
#include "ingest/kineto/trace_metadata.h"

namespace joulemap::ingest {
namespace {

using namespace kineto;

constexpr std::size_t kMaxKinetoThreads = 4;
constexpr std::int64_t kFirstLikelyUnix_ns = 1'000'000'000 * std::int64_t{1'000'000'000};  // September 2001
constexpr std::int64_t kLatestBase_ns = std::int64_t{1} << 61;

// Each thread takes a block from the source, under a lock, and parses it without one.
class ParallelBlockReader {
 public:
  ParallelBlockReader(BlockSource& source, TraceAssembly& assembly) : source_(source), assembly_(assembly) {}

  Status read_blocks(std::size_t threads) {
    std::vector<std::thread> workers;
    {
      const ScopedSignalBlock signal_block;
      for (std::size_t i = 1; i < threads; ++i) workers.emplace_back([this, i] { read_blocks_on_thread(i); });
    }
    read_blocks_on_thread(0);
    for (std::thread& worker : workers) worker.join();
    if (error_) return *std::move(error_);
    return Done{};
  }

 private:
  void read_blocks_on_thread(std::size_t thread) {
    BlockBuffer text;
    while (const std::optional<std::uint64_t> number = take_next_block(text)) {
      assembly_.add(thread, *number, text, parse_json_block(text.contents(), false, assembly_.tables(thread)));
    }
  }

  std::optional<std::uint64_t> take_next_block(BlockBuffer& text) {
    const std::lock_guard lock(mutex_);
    if (error_) return std::nullopt;
    Result<bool> read_result = source_.read_next_block(text);
    if (!read_result) {
      error_ = std::move(read_result).error();
      return std::nullopt;
    }
    return *read_result ? std::optional(block_count_++) : std::nullopt;
  }

  BlockSource& source_;
  TraceAssembly& assembly_;
  std::mutex mutex_;
  std::uint64_t block_count_ = 0;
  std::optional<Error> error_;
};

std::size_t kineto_thread_count(const KinetoReadOptions& options) {
  if (options.threads > 0) return options.threads;
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMaxKinetoThreads);
}

std::string describe_damage_offset(const AssemblyResult& events) {
  if (!events.first_damage_offset) return "";
  return "; the first at byte " + std::to_string(*events.first_damage_offset) + " of the text";
}

void report_damage(const AssemblyResult& events, const BlockSource& source, Trace& trace) {
  Diagnostics& diagnostics = trace.diagnostics;
  if (events.event_counts.dropped_event_count > 0) {
    diagnostics.add({"import.events-dropped", events.event_counts.dropped_event_count,
                     "invalid events of the trace were skipped" + describe_damage_offset(events),
                     "their time is missing; if there are many, export the trace again"});
  }
  if (events.event_counts.repaired_event_count > 0) {
    diagnostics.add({"import.events-repaired", events.event_counts.repaired_event_count,
                     "events with unescaped quotes were repaired" + describe_damage_offset(events),
                     "a newer PyTorch escapes them"});
  }
  if (events.event_counts.invalid_device_event_count > 0) {
    diagnostics.add({"import.odd-devices", events.event_counts.invalid_device_event_count,
                     "events have impossible GPU numbers: their energy is unknown", "assign the GPU with --map"});
  }
  if (events.is_truncated && !source.is_bare_event_list()) {
    diagnostics.add({"import.truncated", 1, "the trace is truncated: the part before its end was read", ""});
  }
  for (const auto& [category, count] : events.event_counts.unknown_category_counts) {
    diagnostics.add({"import.unknown-category", count,
                     "events of the category " + joulemap::quoted(category) + " are unknown and were skipped", ""});
  }
}

// Adds the base time to all events and determines whether the sums are Unix times.
void apply_base_time(const TraceMetadata& metadata, const AssemblyResult& events, Trace& trace) {
  const std::int64_t base_time_ns = metadata.base_time_ns.value_or(0);
  if (base_time_ns > kLatestBase_ns) {
    trace.clock = TraceClock::since_start;
    trace.diagnostics.add({"import.no-base-time", 1, "the trace's base time is invalid", ""});
    return;
  }
  // The majority of the events decides, so that one damaged time does not.
  std::uint64_t unix_time_count = 0;
  std::uint64_t relative_time_count = 0;
  for (std::vector<TraceEvent>& block : trace.event_blocks) {
    for (TraceEvent& event : block) {
      event.start_ns += base_time_ns;
      ++(event.start_ns >= kFirstLikelyUnix_ns ? unix_time_count : relative_time_count);
    }
  }
  if (unix_time_count >= relative_time_count) return;
  trace.clock = TraceClock::since_start;
  const std::string_view reason =
      events.is_truncated ? "its end, which may contain it, is missing" : "the event times are too old";
  trace.diagnostics.add({"import.no-base-time", 1, "the trace has no base time: " + std::string(reason),
                         "set it with --start UNIX_NS; otherwise the trace starts with the power log"});
}

void set_trace_process(Trace& trace) {
  std::set<std::int64_t> processes;
  for (const TraceThread& thread : trace.threads) {
    if (thread.process > 0) processes.insert(thread.process);
  }
  if (processes.size() == 1) trace.process = *processes.begin();
}

Error not_a_pytorch_trace_error(const EventCounts& notes) {
  return Error{ErrorCode::malformed,
               "no event has a category of PyTorch's profiler; found " +
                   joulemap::quoted(notes.unknown_category_counts.begin()->first),
               "profiles of ONNX Runtime and TensorFlow have formats of their own: joulemap import --help"};
}

Result<Trace> read_kineto_blocks(TextReader read, const KinetoReadOptions& options) {
  BlockSource source(std::move(read), std::max<std::size_t>(options.block_bytes, 1));
  if (Status header_status = source.read_header(); !header_status) return std::move(header_status).error();
  const std::size_t threads = kineto_thread_count(options);
  TraceAssembly assembly(threads);
  if (Status status = ParallelBlockReader(source, assembly).read_blocks(threads); !status)
    return std::move(status).error();

  Trace trace{.format = "kineto"};
  const AssemblyResult events = assembly.finish(trace);
  if (trace.event_blocks.empty() && !events.event_counts.unknown_category_counts.empty())
    return not_a_pytorch_trace_error(events.event_counts);
  trace.read_event_count = events.event_counts.event_count;
  trace.dropped_event_count = events.event_counts.dropped_event_count;
  TraceMetadata metadata;
  read_metadata(source.header(), metadata);
  read_metadata(events.footer, metadata);
  report_damage(events, source, trace);
  if (source.is_header_damaged() || metadata.is_damaged) {
    trace.diagnostics.add({"import.damaged-header", 1, "the trace's metadata is partly damaged", ""});
  }
  apply_base_time(metadata, events, trace);
  set_trace_process(trace);
  trace.rank = metadata.rank;
  trace.host = to_valid_utf8(metadata.host);
  trace.environment = std::move(metadata.environment);
  return trace;
}

}  // namespace

Result<Trace> read_kineto(const std::string& path, const KinetoReadOptions& options) {
  Result<formats::MaybeGzipFile> file = formats::MaybeGzipFile::open(path);
  if (!file) return std::move(file).error();
  const auto text_reader = [&](std::span<char> buffer) {
    report_progress(options.on_progress, file->read_fraction());
    return file->read(buffer);
  };
  Result<Trace> trace = read_kineto_blocks(text_reader, options);
  if (!trace) return std::move(trace).error().with_context(path);
  if (file->stream_state() == formats::StreamState::truncated) {
    trace->diagnostics.add(
        {"import.truncated", 1, "the compressed file is truncated: the part before its end was read", ""});
  } else if (file->stream_state() == formats::StreamState::damaged) {
    trace->diagnostics.add(
        {"import.damaged-file", 1, "the compressed file is damaged: the readable part was decompressed", ""});
  }
  return trace;
}

Trace read_kineto_text(std::string_view json, const KinetoReadOptions& options) {
  const auto text_reader = [&](std::span<char> buffer) -> Result<std::size_t> {
    const std::size_t count = std::min(buffer.size(), json.size());
    if (count > 0) std::memcpy(buffer.data(), json.data(), count);
    json.remove_prefix(count);
    return count;
  };
  Result<Trace> trace = read_kineto_blocks(text_reader, options);
  if (trace) return *std::move(trace);
  Trace empty_trace{.format = "kineto"};
  empty_trace.diagnostics.add({"import.not-a-trace", 1, trace.error().message, trace.error().remedy});
  return empty_trace;
}

}  // namespace joulemap::ingest
