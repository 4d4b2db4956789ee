// SPDX-License-Identifier: Apache-2.0
//
// Collects the events of a Trace into one list, for tests.
#pragma once

#include <vector>

#include "ingest/trace.h"

namespace joulemap::ingest {

inline std::vector<TraceEvent> collect_events(const Trace& trace) {
  std::vector<TraceEvent> events;
  for (const std::vector<TraceEvent>& block : trace.event_blocks)
    events.insert(events.end(), block.begin(), block.end());
  return events;
}

}  // namespace joulemap::ingest
