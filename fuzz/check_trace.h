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
  for (const std::vector<TraceEvent>& block : trace.blocks) {
    for (const TraceEvent& event : block) {
      ++events;
      const bool is_gpu = is_on_gpu(event.kind);
      std::int64_t end_ns = 0;
      JOULEMAP_CHECK(event.duration_ns >= 0, "an event of negative length");
      JOULEMAP_CHECK(!__builtin_add_overflow(event.start_ns, event.duration_ns, &end_ns), "a time that overflows");
      JOULEMAP_CHECK(event.name < (is_gpu ? trace.classes.size() : trace.names.size()), "no such name");
      JOULEMAP_CHECK(event.track < (is_gpu ? trace.queues.size() : trace.threads.size()), "no such track");
      if (is_gpu && trace.gpu_events_identify_ops)
        JOULEMAP_CHECK(event.external_id <= trace.names.size(), "no such operation");
      if (event.kind == EventKind::copy || event.kind == EventKind::fill) {
        JOULEMAP_CHECK(event.detail < trace.bytes.size(), "no such size");
      }
    }
  }
  JOULEMAP_CHECK(events <= trace.events_read + trace.events_read, "more events than were read");
  JOULEMAP_CHECK(trace.events_dropped <= trace.events_read, "more were dropped than were read");
}

}  // namespace joulemap::ingest
