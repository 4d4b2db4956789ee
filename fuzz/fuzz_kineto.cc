// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the reader of PyTorch traces, with blocks of any size: it must not crash, every index must be valid, no time
// may be negative, and one and two threads must give the same result.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "ingest/kineto/kineto_reader.h"

namespace {

using joulemap::ingest::EventKind;
using joulemap::ingest::Trace;
using joulemap::ingest::TraceEvent;

void check_event(const Trace& trace, const TraceEvent& event) {
  JOULEMAP_CHECK(event.start_ns >= 0 && event.duration_ns >= 0, "an event with a negative time");
  if (!is_on_gpu(event.kind)) {
    JOULEMAP_CHECK(event.name_index < trace.names.size() && event.track_index < trace.threads.size(),
                   "an index of nothing");
    return;
  }
  JOULEMAP_CHECK(event.name_index < trace.kernel_classes.size() && event.track_index < trace.kernel_queues.size(),
                 "an index of nothing");
  JOULEMAP_CHECK(event.kind == EventKind::kernel || event.detail_index < trace.byte_counts.size(),
                 "a size that is none");
}

std::uint64_t check_trace_events(const Trace& trace) {
  std::uint64_t kept = 0;
  for (const auto& block : trace.event_blocks) {
    for (const TraceEvent& event : block) check_event(trace, event);
    kept += block.size();
  }
  JOULEMAP_CHECK(kept + trace.dropped_event_count <= trace.read_event_count, "more events than there are");
  JOULEMAP_CHECK(trace.dropped_event_count == 0 || trace.diagnostics.contains("import.events-dropped"),
                 "a silent loss");
  return kept;
}

}  // namespace

// The first byte plus 1 is the block size in bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t block_bytes = data[0] + std::size_t{1};
  const Trace single_threaded = joulemap::ingest::read_kineto_text(text, {.block_bytes = block_bytes, .threads = 1});
  const Trace two = joulemap::ingest::read_kineto_text(text, {.block_bytes = block_bytes, .threads = 2});
  JOULEMAP_CHECK(check_trace_events(single_threaded) == check_trace_events(two),
                 "two threads find something else than one");
  JOULEMAP_CHECK(
      single_threaded.read_event_count == two.read_event_count && single_threaded.names.size() == two.names.size(),
      "they count differently");
  static_cast<void>(check_trace_events(joulemap::ingest::read_kineto_text(text)));
  return 0;
}
