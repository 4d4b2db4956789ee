// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_trace.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/scoped_signal_block.h"
#include "ingest/trace_builder.h"
#include "ingest/xplane/xplane_assembly.h"
#include "ingest/xplane/xplane_event_converter.h"
#include "ingest/xplane/xplane_event_reader.h"
#include "ingest/xplane/xplane_line_selector.h"
#include "ingest/xplane/xplane_segments.h"

namespace joulemap::ingest {
namespace {

constexpr std::size_t kMaxXPlaneThreads = 4;
// The year 2001 in Unix time. Smaller times are relative to the start of the profile.
constexpr std::int64_t kEarliestUnix_ns = 1'000'000'000 * std::int64_t{1'000'000'000};

// At most one thread per segment.
std::size_t xplane_thread_count(const XPlaneReadOptions& options, std::size_t bytes) {
  const std::size_t cores = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMaxXPlaneThreads);
  return std::min(options.threads > 0 ? options.threads : cores, bytes / options.segment_bytes + 1);
}

// Each thread takes a segment, under a lock, and reads it without one.
class ParallelSegmentReader {
 public:
  ParallelSegmentReader(std::string_view bytes, TraceBuilder& builder, const XPlaneReadOptions& options)
      : line_selector_(builder),
        segments_(bytes, line_selector_, options.segment_bytes),
        readers_(xplane_thread_count(options, bytes.size())),
        assembly_(builder, readers_) {
    for (XPlaneEventConverter& reader : readers_) {
      for (const auto& [name, hlo_proto] : line_selector_.programs()) reader.add_program(name, hlo_proto);
    }
  }

  // Returns diagnostics that report damaged parts of the file.
  Diagnostics read_segments() {
    std::vector<std::thread> workers;
    {
      const ScopedSignalBlock signal_block;
      for (std::size_t i = 1; i < readers_.size(); ++i) workers.emplace_back([this, i] { read_segments_on_thread(i); });
    }
    read_segments_on_thread(0);
    for (std::thread& worker : workers) worker.join();
    Diagnostics damage = assembly_.finish(readers_.size());
    damage.add_all(segments_.take_damage());
    return damage;
  }
  const XPlaneLineSelector& line_selector() const { return line_selector_; }

 private:
  void read_segments_on_thread(std::size_t number) {
    XPlaneEventConverter& reader = readers_[number];
    XEventReader events(reader);
    std::unique_lock lock(mutex_);
    while (std::optional<XSegment> segment = segments_.next()) {
      const std::size_t position = taken_segment_count_++;
      const XLineContext line = line_selector_.line();
      lock.unlock();
      reader.begin_segment(line, segment->line_field_count);
      events.read(*segment, segment->damage);
      XSegmentEvents segment_events = reader.take_segment();
      lock.lock();
      assembly_.add(position, number, std::move(segment_events), std::move(segment->damage));
    }
  }

  XPlaneLineSelector line_selector_;
  XPlaneSegments segments_;
  std::vector<XPlaneEventConverter> readers_;
  XPlaneAssembly assembly_;
  std::mutex mutex_;  // guards everything but the readers, each of which one thread owns
  std::size_t taken_segment_count_ = 0;
};

void apply_profile_start_time(std::optional<std::int64_t> start_ns, TraceBuilder& builder) {
  const std::vector<std::vector<TraceEvent>>& blocks = builder.trace().event_blocks;
  // The majority of timestamps decides whether they are relative: single ones may be damaged.
  std::int64_t relative = 0;
  std::int64_t events = 0;
  for (const std::vector<TraceEvent>& block : blocks) {
    events += std::ssize(block);
    relative += std::ranges::count_if(block, [](const TraceEvent& event) { return event.start_ns < kEarliestUnix_ns; });
  }
  if (2 * relative <= events) return;
  if (start_ns) {
    builder.shift_times(*start_ns);
  } else {
    builder.trace().clock = TraceClock::since_start;
  }
}

}  // namespace

Result<Trace> read_xplane_trace_bytes(std::string_view bytes, const XPlaneReadOptions& options) {
  TraceBuilder builder("xplane");
  ParallelSegmentReader readers(bytes, builder, options);
  const Diagnostics damage = readers.read_segments();
  Trace& trace = builder.trace();
  if (readers.line_selector().recognized_plane_count() == 0 && trace.dropped_event_count > 0) {
    return Error{ErrorCode::malformed, "the profile is truncated before the names of its events",
                 "profile again, and stop the profiler before the program ends"};
  }
  if (readers.line_selector().recognized_plane_count() == 0) {
    return Error{ErrorCode::malformed, "not a TensorFlow or JAX profile",
                 "pass the *.xplane.pb file, or the log folder of the profiler"};
  }
  apply_profile_start_time(readers.line_selector().start_ns(), builder);
  trace.process = readers.line_selector().process();
  trace.gpu_events_identify_ops = true;
  trace.diagnostics.add_all(damage);
  return std::move(builder).finish();
}

}  // namespace joulemap::ingest
