// SPDX-License-Identifier: Apache-2.0
//
// Checks what every trace reader guarantees for arbitrary input bytes: valid indices, no negative durations, no
// overflow of times. Users of a Trace rely on this.
#pragma once

#include "base/check.h"
#include "base/result.h"
#include "ingest/trace.h"

namespace joulemap::ingest {

inline void check_trace(const Result<Trace>& read) {
  if (!read) {
    JOULEMAP_CHECK(!read.error().message.empty(), "an error that says nothing");
    return;
  }
  const Trace& trace = *read;
  std::uint64_t events = 0;
  for (const std::vector<TraceEvent>& block : trace.event_blocks) {
    for (const TraceEvent& event : block) {
      ++events;
      const bool is_gpu = is_on_gpu(event.kind);
      std::int64_t end_ns = 0;
      JOULEMAP_CHECK(event.duration_ns >= 0, "an event of negative length");
      JOULEMAP_CHECK(!__builtin_add_overflow(event.start_ns, event.duration_ns, &end_ns), "a time that overflows");
      JOULEMAP_CHECK(event.name_index < (is_gpu ? trace.kernel_classes.size() : trace.names.size()), "no such name");
      JOULEMAP_CHECK(event.track_index < (is_gpu ? trace.kernel_queues.size() : trace.threads.size()), "no such track");
      if (is_gpu && trace.gpu_events_identify_ops)
        JOULEMAP_CHECK(event.external_id <= trace.names.size(), "no such operation");
      if (event.kind == EventKind::copy || event.kind == EventKind::fill) {
        JOULEMAP_CHECK(event.detail_index < trace.byte_counts.size(), "no such size");
      }
    }
  }
  JOULEMAP_CHECK(events <= trace.read_event_count + trace.read_event_count, "more events than were read");
  JOULEMAP_CHECK(trace.dropped_event_count <= trace.read_event_count, "more were dropped than were read");
}

}  // namespace joulemap::ingest
